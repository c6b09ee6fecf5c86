name = "café"
price = 3
