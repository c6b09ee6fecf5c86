name = "café"
price = 2
