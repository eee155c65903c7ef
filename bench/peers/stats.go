// stats.go - see stats.c: ReadMemStats, and all of runtime/metrics.
package main

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

const (
	samples = 2000
	batch   = 16
	cells   = 10000000 / 32
	apart   = 20e-6 // seconds
)

type cell struct {
	next  *cell
	words [3]uint64
}

func readExact() uint64 {
	var m runtime.MemStats

	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// liveReader is a function that reads every metric.
func liveReader() func() uint64 {
	var sample []metrics.Sample
	objects := 0

	for i, d := range metrics.All() {
		sample = append(sample, metrics.Sample{Name: d.Name})
		if d.Name == "/memory/classes/heap/objects:bytes" {
			objects = i
		}
	}
	return func() uint64 {
		metrics.Read(sample)
		return sample[objects].Value.Uint64()
	}
}

func main() {
	exact, others := word(1) == "exact", int(number(2, 0, 7))
	read, each := liveReader(), batch
	if exact {
		read, each = readExact, 1
	}
	var first *cell
	for i := 0; i < cells; i++ {
		first = &cell{next: first}
	}
	var s span
	var found, done uint64
	var sample []float64
	together(others+1, &s, func(who int) {
		for who != 0 && atomic.LoadUint64(&done) == 0 {
		}
		for i := 0; who == 0 && i < samples; i++ {
			for until := wallNow() + apart; wallNow() < until; {
			}
			began := wallNow()
			for k := 0; k < each; k++ {
				if read() >= cells*32 {
					found++
				}
			}
			sample = append(sample, (wallNow()-began)*1e6/float64(each))
		}
		atomic.StoreUint64(&done, 1)
	})
	runtime.KeepAlive(first)
	report(median(sample), "us", &s, found)
}
