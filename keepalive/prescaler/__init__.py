"""The warm floor, raised and lowered ahead of demand."""
