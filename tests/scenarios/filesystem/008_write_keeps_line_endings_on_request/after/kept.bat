echo b
