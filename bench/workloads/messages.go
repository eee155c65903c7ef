// messages.go - see messages.c.
package main

import (
	"runtime"
	"time"
	"unsafe"
)

const operations = 2000000

type (
	message256  [32]uint64
	message1024 [128]uint64
)

var times latency

// first is the number that every message begins with.
func first[T any](m *T) *uint64 { return (*uint64)(unsafe.Pointer(m)) }

func replaceAll[T any](table []*T, text *T) uint64 {
	seed, sum, count := uint64(1), uint64(0), uint64(len(table))
	began := time.Now()

	for i := uint64(0); i < operations; i++ {
		place := &table[below(&seed, count)]
		sum = sum*31 + *first(*place)
		m := new(T)
		*m = *text
		*first(m) = count + i
		*place = m
		ended := time.Now()
		times.add(uint64(ended.Sub(began)))
		began = ended
	}
	return sum
}

func run[T any](count uint64, s *span) uint64 {
	table := make([]*T, count)
	text := new(T)

	for i := range table {
		m := new(T)
		*m = *text
		*first(m) = uint64(i)
		table[i] = m
	}
	s.start()
	sum := replaceAll(table, text)
	s.stop()
	runtime.KeepAlive(table)
	return sum
}

func main() {
	count, size := number(1, 1, 100000000), number(2, 256, 1024)
	var s span
	var sum uint64

	switch size {
	case 256:
		sum = run[message256](count, &s)
	case 1024:
		sum = run[message1024](count, &s)
	default:
		die("no such size")
	}
	times.report(operations)
	report(s.wall*1e9/operations, "ns", &s, sum)
}
