// stack.go - see stack.c.
package main

import "runtime"

const collections = 5

var (
	s       span
	seconds float64
)

func collectOften() {
	var sample []float64

	runtime.GC()
	for i := 0; i < collections; i++ {
		var one span
		one.start()
		runtime.GC()
		one.stop()
		sample = append(sample, one.wall)
		s.wall += one.wall
		s.cpu += one.cpu
	}
	seconds = median(sample)
}

//go:noinline
func makeObject(n uint64) *[4]uint64 { return &[4]uint64{0, n} }

func descend(n uint64) uint64 {
	if n == 0 {
		collectOften()
		return 0
	}
	object := makeObject(n)
	below := descend(n - 1)
	return below*31 + object[1]
}

func main() {
	frames := number(1, 1, 10000000)
	sum := descend(frames)

	figure("collection_ms", seconds*1e3)
	figure("cpu_ns", s.cpu*1e9/collections/float64(frames))
	pauseFigure()
	report(seconds*1e9/float64(frames), "ns", &s, sum)
}
