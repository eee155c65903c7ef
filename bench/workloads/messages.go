// messages.go - see messages.c.
package main

import (
	"math/bits"
	"runtime"
	"time"
	"unsafe"
)

const (
	operations = 2000000
	partsLog2  = 6
	parts      = 1 << partsLog2
	powers     = 40
)

type (
	message256  [32]uint64
	message1024 [128]uint64
)

type latency struct {
	exact   [parts]uint64
	count   [powers][parts]uint64
	longest uint64
}

func (l *latency) add(ns uint64) {
	if ns > l.longest {
		l.longest = ns
	}
	if ns < parts {
		l.exact[ns]++
		return
	}
	power := bits.Len64(ns) - 1 - partsLog2
	l.count[power][ns>>power-parts]++
}

func (l *latency) rank(n uint64) float64 {
	var longer uint64

	for power := powers - 1; power >= 0; power-- {
		for i := parts - 1; i >= 0; i-- {
			longer += l.count[power][i]
			if longer > n {
				return float64(uint64(parts+i+1)<<power) / 1e3
			}
		}
	}
	for ns := parts - 1; ns >= 0; ns-- {
		longer += l.exact[ns]
		if longer > n {
			return float64(ns) / 1e3
		}
	}
	return 0
}

func (l *latency) report() {
	figure("p50_us", l.rank(operations/2))
	figure("p99_us", l.rank(operations/100))
	figure("p99.9_us", l.rank(operations/1000))
	figure("p99.99_us", l.rank(operations/10000))
	figure("max_us", float64(l.longest)/1e3)
}

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
	times.report()
	report(s.wall*1e9/operations, "ns", &s, sum)
}
