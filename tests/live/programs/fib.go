// A recursion, arguments and results of Go's own kinds, and a stack that has to grow, for tests of Go programs.
package main

type point struct {
	x, y int32
}

type item struct {
	name  string
	price int
	at    point
}

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func order(whom string, times int8, what *item, at point, tags []string, any interface{}) (string, int) {
	if times < 0 {
		return "none", -1
	}
	return whom + what.name + tags[0], int(times) * what.price
}

//go:noinline
func (it *item) cost(count uint16) int {
	return int(count) * it.price
}

//go:noinline
func deep(n int) int {
	var pages [512]byte
	pages[n%512] = 1
	if n == 0 {
		return int(pages[0])
	}
	return deep(n-1) + int(pages[n%512])
}

func main() {
	it := &item{"apple", 25, point{3, -4}}
	println(fib(10))
	println(order("hello ", 2, it, point{7, -8}, []string{" red", "round"}, 42))
	println(it.cost(3))
	done := make(chan int)
	go func() { done <- deep(1000) }()
	println(<-done)
}
