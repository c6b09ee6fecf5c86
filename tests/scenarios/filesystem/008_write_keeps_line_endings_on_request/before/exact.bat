echo a
