func main() {
	if ready {
		run()
	}
}
