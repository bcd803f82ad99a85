"""What runs on a desk: models of autoscalers, made loads, simulations, and searches over them."""
