func main() {
	if x {
		return 1
	}
}
