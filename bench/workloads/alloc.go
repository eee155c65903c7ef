// alloc.go - see alloc.c.
package main

import "unsafe"

const (
	later  = 64
	warmUp = 8 << 20
)

// Scanned objects are a number and pointers, the others are numbers.  With 8
// bytes the number is where the pointer would be: it is below any address.
type (
	scan8  [1]*uint64
	scan16 struct {
		n uint64
		p [1]*uint64
	}
	scan64 struct {
		n uint64
		p [7]*uint64
	}
	scan256 struct {
		n uint64
		p [31]*uint64
	}
	scan1024 struct {
		n uint64
		p [127]*uint64
	}
	scan4096 struct {
		n uint64
		p [511]*uint64
	}
	scan32768 struct {
		n uint64
		p [4095]*uint64
	}
	noscan8     [1]uint64
	noscan16    [2]uint64
	noscan64    [8]uint64
	noscan256   [32]uint64
	noscan1024  [128]uint64
	noscan4096  [512]uint64
	noscan32768 [4096]uint64
)

// first is the number that every object begins with.
func first[T any](p *T) *uint64 { return (*uint64)(unsafe.Pointer(p)) }

func prepare[T any]() {
	var t T
	n := 2 * warmUp / int(unsafe.Sizeof(t))

	for i := 0; i < n; i++ {
		p := new(T)
		if *first(p) != 0 {
			die("memory was not zeroed")
		}
		*first(p) = 1
	}
}

func churn[T any](n uint64) uint64 {
	var held [later]*T
	var sum uint64

	if n == 0 {
		prepare[T]()
		return 0
	}
	for i := uint64(0); i < n; i++ {
		p := new(T)
		if old := held[i%later]; old != nil {
			sum += *first(old)
		}
		*first(p) = i
		held[i%later] = p
	}
	for _, p := range held {
		sum += *first(p)
	}
	return sum
}

// churnAny is churn of slices, whose size the compiler does not know.
func churnAny(size, n uint64) uint64 {
	var held [later][]*uint64
	var sum uint64

	if n == 0 {
		n = 2 * warmUp / size
	}
	for i := uint64(0); i < n; i++ {
		p := make([]*uint64, size/8)
		if old := held[i%later]; old != nil {
			sum += *(*uint64)(unsafe.Pointer(&old[0]))
		}
		*(*uint64)(unsafe.Pointer(&p[0])) = i
		held[i%later] = p
	}
	for _, p := range held {
		sum += *(*uint64)(unsafe.Pointer(&p[0]))
	}
	return sum
}

var sizes = []struct {
	size, n      uint64
	scan, noscan func(uint64) uint64
}{
	{8, 8000000, churn[scan8], churn[noscan8]},
	{16, 8000000, churn[scan16], churn[noscan16]},
	{64, 6000000, churn[scan64], churn[noscan64]},
	{256, 3000000, churn[scan256], churn[noscan256]},
	{1024, 1000000, churn[scan1024], churn[noscan1024]},
	{4096, 300000, churn[scan4096], churn[noscan4096]},
	{32768, 50000, churn[scan32768], churn[noscan32768]},
}

func main() {
	size, kind, threads := number(1, 8, 32768), word(2), int(number(3, 1, 16))
	var s span

	for _, c := range sizes {
		if c.size != size {
			continue
		}
		run := c.scan
		switch kind {
		case "noscan":
			run = c.noscan
		case "any":
			run = func(n uint64) uint64 { return churnAny(size, n) }
		}
		run(0)
		sums := make([]uint64, threads)
		together(threads, &s, func(who int) { sums[who] = run(c.n) })
		var sum uint64
		for _, n := range sums {
			sum += n
		}
		report(s.wall*1e9/float64(c.n), "ns", &s, sum)
		return
	}
	die("no such size")
}
