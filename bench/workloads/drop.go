// drop.go - see drop.c.
package main

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

const (
	least  = 16
	steps  = 109
	mean   = 448
	tenths = 9
)

// fill makes n objects of numbers, each of which begins with its size.
func fill(n uint64) []*uint64 {
	table := make([]*uint64, n)
	seed := uint64(1)

	for i := range table {
		size := least + 8*below(&seed, steps)
		words := make([]uint64, size/8)
		for k := range words {
			words[k] = 0x0101010101010101 * (1 + uint64(i)%64)
		}
		words[0] = size
		table[i] = &words[0]
	}
	return table
}

func drop(table []*uint64, contiguous bool) {
	seed := uint64(2)

	for i := range table {
		dies := i < len(table)/10*tenths
		if !contiguous {
			dies = below(&seed, 10) < tenths
		}
		if dies {
			table[i] = nil
		}
	}
}

// liveBytes returns the bytes of what lives, and a sum of the contents.
func liveBytes(table []*uint64) (live, sum uint64) {
	live = 8 * uint64(len(table))
	for _, p := range table {
		if p == nil {
			continue
		}
		last := (*uint64)(unsafe.Add(unsafe.Pointer(p), *p-8))
		live += *p
		sum = sum*31 + *p + *last
	}
	return
}

func collectAndRelease(s *span) {
	var release span

	s.start()
	runtime.GC()
	s.stop()
	figure("collected_MiB", residentMiB())
	release.start()
	debug.FreeOSMemory()
	release.stop()
	figure("released_MiB", residentMiB())
	figure("release_ms", release.wall*1e3)
	s.wall += release.wall
	s.cpu += release.cpu
}

func main() {
	contiguous, n := word(1) == "contiguous", number(2, 1, 65536)<<20/mean
	var s span

	table := fill(n)
	figure("before_MiB", residentMiB())
	drop(table, contiguous)
	collectAndRelease(&s)
	live, sum := liveBytes(table)
	runtime.KeepAlive(table)
	figure("live_MiB", float64(live)/(1<<20))
	report(residentMiB()*(1<<20)/float64(live), "x", &s, sum)
}
