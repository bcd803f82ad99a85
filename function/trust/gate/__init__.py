"""What must not be swapped: content, ages, people who asked not to be, missing consent."""
