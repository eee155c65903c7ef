// shift.go - see shift.c.
package main

import (
	"runtime"
	"unsafe"
)

const tenths = 9

type (
	small [8]uint64
	large [64]uint64
)

// first is the number that every object begins with.
func first[T any](p *T) *uint64 { return (*uint64)(unsafe.Pointer(p)) }

func objectMake[T any](number uint64) *uint64 {
	p := new(T)
	words := unsafe.Slice(first(p), unsafe.Sizeof(*p)/8)

	for i := range words {
		words[i] = 0x0101010101010101 * (1 + number%64)
	}
	words[0] = number
	return &words[0]
}

// drop returns how many are kept.
func drop(table []*uint64) uint64 {
	seed, kept := uint64(1), uint64(0)

	for i := range table {
		if below(&seed, 10) >= tenths {
			kept++
			continue
		}
		table[i] = nil
	}
	return kept
}

func main() {
	n := number(1, 1, 65536) << 20 / 64
	var s span

	s.start()
	table := make([]*uint64, n+n*64/512)
	for i := uint64(0); i < n; i++ {
		table[i] = objectMake[small](i)
	}
	figure("before_MiB", residentMiB())
	kept := drop(table[:n])
	runtime.GC()
	figure("dropped_MiB", residentMiB())
	refilled := (n - kept) * 64 / 512
	for i := uint64(0); i < refilled; i++ {
		table[n+i] = objectMake[large](i)
	}
	figure("refilled_MiB", residentMiB())
	s.stop()
	live := 8*uint64(len(table)) + kept*64 + refilled*512
	var sum uint64
	for _, p := range table {
		if p != nil {
			sum = sum*31 + *p + *(*uint64)(unsafe.Add(unsafe.Pointer(p), 8))
		}
	}
	report(residentMiB()*(1<<20)/float64(live), "x", &s, sum)
	runtime.KeepAlive(table)
}
