// fade.go - see fade.c.
package main

import (
	"runtime"
	"runtime/debug"
	"time"
)

const (
	least   = 64
	steps   = 103
	mean    = 472
	every   = (2 << 20) / mean
	ticks   = 10
	garbage = 128
)

var marks = []struct {
	seconds uint64
	name    string
}{{0, "0s_MiB"}, {1, "1s_MiB"}, {2, "2s_MiB"}, {5, "5s_MiB"},
	{10, "10s_MiB"}, {20, "20s_MiB"}, {60, "60s_MiB"}, {180, "180s_MiB"}}

func makeObject(n uint64, seed *uint64) *uint64 {
	words := make([]uint64, (least+8*below(seed, steps))/8)

	for i := range words {
		words[i] = 0x0101010101010101 * (1 + n%64)
	}
	words[0] = n
	return &words[0]
}

var kept *uint64

func watch(seconds uint64) {
	next := 0

	for i := uint64(0); i <= seconds*ticks; i++ {
		if next < len(marks) && i == marks[next].seconds*ticks {
			figure(marks[next].name, residentMiB())
			next++
		}
		if i == seconds*ticks {
			return
		}
		time.Sleep(time.Second / ticks)
		seed := uint64(1)
		for k := uint64(0); k < garbage; k++ {
			kept = makeObject(k, &seed)
		}
	}
}

func main() {
	told, n, seconds := word(1) == "told", number(2, 1, 65536)<<20/mean, number(3, 0, 600)
	table := make([]*uint64, n)
	seed, sum, own := uint64(1), uint64(0), residentMiB()
	var s span

	for i := range table {
		table[i] = makeObject(uint64(i), &seed)
	}
	figure("before_MiB", residentMiB())
	for i := range table {
		if i%every != 0 {
			table[i] = nil
		}
	}
	s.start()
	if told {
		debug.FreeOSMemory()
	}
	watch(seconds)
	s.stop()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	figure("held_x", (residentMiB()-own)*(1<<20)/float64(m.Sys-m.HeapReleased))
	for _, p := range table {
		sum *= 31
		if p != nil {
			sum += *p
		}
	}
	runtime.KeepAlive(table)
	report(residentMiB(), "MiB", &s, sum)
}
