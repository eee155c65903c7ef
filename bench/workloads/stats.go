// stats.go - see stats.c: ReadMemStats, all of runtime/metrics (live and
// metrics), and ReadGCStats.  Threads that run or wait are goroutines, which
// take turns on as many Ps as there are processors; those with a cache have a P
// each.
package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	mostSamples = 2000
	batch       = 16
)

var cachedSizes = [20]int{16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192,
	208, 224, 240, 256, 288, 320, 352, 384}

type cell struct {
	next  *cell
	words [3]uint64
}

type job struct {
	read            func() uint64
	each            int // reads a sample
	cached          bool
	allocate, wait  bool
	live            uint64 // bytes of cells
	samples, others int
	sample          []float64
	found           uint64
	arrived, ready  int64 // others, in all rounds
	next            []chan bool
	lap             []int64 // of each other
	done            int64
}

func readExact() uint64 {
	var m runtime.MemStats

	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// collect runs a full collection instead of a read.
func collect() uint64 {
	runtime.GC()
	return math.MaxUint64
}

var history debug.GCStats

func readHistory() uint64 {
	debug.ReadGCStats(&history)
	if history.NumGC == 0 {
		return 0
	}
	return math.MaxUint64
}

// liveReader returns a function that reads every metric.
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

// await gives the processor away while it waits for *counter to reach n, but
// not the P.
func await(counter *int64, n int64) {
	for atomic.LoadInt64(counter) < n {
		syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// made is the last object that a thread allocated, scanned as in C.
var made [257]*[8]*byte

var kept [257][20][]*byte

// standWithCache fills the cache of its P when all others have a P as well.
func (j *job) standWithCache(who int) {
	for i := int64(0); i < int64(j.samples); i++ {
		atomic.AddInt64(&j.arrived, 1)
		await(&j.arrived, (i+1)*int64(j.others))
		for k, size := range cachedSizes {
			kept[who][k] = make([]*byte, size/8)
		}
		atomic.AddInt64(&j.ready, 1)
		<-j.next[i]
	}
}

func (j *job) othersRun() {
	seen := make([]int64, len(j.lap))

	for i := range j.lap {
		seen[i] = atomic.LoadInt64(&j.lap[i])
	}
	for i := range j.lap {
		for atomic.LoadInt64(&j.lap[i])-seen[i] < 2 {
			time.Sleep(time.Millisecond)
		}
	}
}

func (j *job) readOften() {
	for i := 0; i < j.samples; i++ {
		if j.cached {
			await(&j.ready, int64(i+1)*int64(j.others))
		} else if j.each == 1 && !j.wait {
			j.othersRun()
		}
		bytes, began := uint64(0), wallNow()
		for k := 0; k < j.each; k++ {
			bytes = j.read()
		}
		j.sample = append(j.sample, (wallNow()-began)*1e6/float64(j.each))
		if bytes >= j.live {
			j.found++
		}
		if j.cached {
			close(j.next[i])
		}
	}
	if j.wait {
		close(j.next[0])
	}
	atomic.StoreInt64(&j.done, 1)
}

func (j *job) work(who int) {
	switch {
	case who == 0:
		j.readOften()
	case j.cached:
		j.standWithCache(who)
	case j.wait:
		<-j.next[0]
	default:
		for atomic.LoadInt64(&j.done) == 0 {
			for i := 0; j.allocate && i < 16; i++ {
				made[who] = new([8]*byte)
			}
			atomic.AddInt64(&j.lap[who-1], 1)
		}
	}
}

// samplesFor returns as many as in C, where a heap measures other things as well.
func (j *job) samplesFor() int {
	stops, n := j.each == 1, 30
	switch {
	case j.wait || j.others == 0 || !stops && j.others <= 2:
		return j.samples
	case j.others <= 2:
		n = 150
	case j.others <= 16:
		n = 60
	}
	if stops && !j.cached {
		n = n / 3 * 2
	}
	return n
}

func main() {
	j := job{read: readExact, each: 1, others: int(number(2, 0, 256)),
		samples: mostSamples, live: 10000000}
	var s span

	what, others, _ := strings.Cut(word(1), "-")
	j.cached, j.allocate, j.wait = what == "cached", others == "alloc", others == "wait"
	if len(os.Args) > 3 {
		j.live = number(3, 0, 100000) * 1000000
	}
	switch what {
	case "live", "metrics":
		j.read, j.each = liveReader(), batch
	case "history":
		j.read, j.each = readHistory, batch
	case "collect":
		j.read, j.samples = collect, mostSamples/20
	}
	j.samples = j.samplesFor()
	j.lap = make([]int64, j.others)
	if j.cached {
		runtime.GOMAXPROCS(j.others + 1)
		debug.SetGCPercent(-1) // which would have to stop those that wait
	}
	for i := 0; i < j.samples; i++ {
		j.next = append(j.next, make(chan bool))
	}
	var first *cell
	for i := uint64(0); i < j.live/32; i++ {
		first = &cell{next: first}
	}
	together(j.others+1, &s, j.work)
	runtime.KeepAlive(first)
	value := median(j.sample)
	figure("p90_us", j.sample[len(j.sample)*9/10])
	report(value, "us", &s, j.found)
}
