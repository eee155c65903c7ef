// grow.go - see grow.c.
package main

import (
	"runtime"
	"syscall"
)

// A cell's words follow it in C; here they are an array of its own type.
type (
	cell64 struct {
		next  *cell64
		words [7]uint64
	}
	cell1024 struct {
		next  *cell1024
		words [127]uint64
	}
)

func make64(n uint64) uint64 {
	var first *cell64
	var sum uint64

	timed(func() {
		for i := uint64(0); i < n; i++ {
			c := &cell64{next: first}
			for k := range c.words {
				c.words[k] = i
			}
			first = c
		}
	})
	for ; first != nil; first = first.next {
		sum = sum*31 + first.words[0]
	}
	return sum
}

func make1024(n uint64) uint64 {
	var first *cell1024
	var sum uint64

	timed(func() {
		for i := uint64(0); i < n; i++ {
			c := &cell1024{next: first}
			for k := range c.words {
				c.words[k] = i
			}
			first = c
		}
	})
	for ; first != nil; first = first.next {
		sum = sum*31 + first.words[0]
	}
	return sum
}

func faults() int64 {
	var u syscall.Rusage

	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		die(err.Error())
	}
	return u.Minflt
}

var (
	made   [2]span
	missed [2]int64
	round  int
)

func timed(make func()) {
	missed[round] = -faults()
	made[round].start()
	make()
	made[round].stop()
	missed[round] += faults()
	round++
}

func main() {
	size, mib := number(1, 64, 1024), number(2, 1, 65536)
	n, list := mib<<20/size, make64

	if size == 1024 {
		list = make1024
	} else if size != 64 {
		die("no such size")
	}
	sum := list(n)
	runtime.GC()
	sum += list(n)
	figure("warm_ns", made[1].wall*1e9/float64(n))
	figure("cold_faults", float64(missed[0])*1e3/float64(n))
	figure("warm_faults", float64(missed[1])*1e3/float64(n))
	report(made[0].wall*1e9/float64(n), "ns", &made[0], sum)
}
