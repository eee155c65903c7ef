// harness.go - what the workloads in Go share; harness.h describes their
// output.
package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// span is the wall and CPU seconds of the measured parts so far.
type span struct{ wall, cpu float64 }

var began = time.Now()

func wallNow() float64 { return time.Since(began).Seconds() }

func cpuNow() float64 {
	var u syscall.Rusage

	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		die(err.Error())
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}

func (s *span) start() {
	s.wall -= wallNow()
	s.cpu -= cpuNow()
}

func (s *span) stop() {
	s.wall += wallNow()
	s.cpu += cpuNow()
}

func die(what string) {
	fmt.Fprintln(os.Stderr, "go:", what)
	os.Exit(1)
}

// random is peer_random: splitmix64.
func random(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number below n, which is at most 1<<32.
func below(state *uint64, n uint64) uint64 { return (random(state) >> 32) * n >> 32 }

func word(i int) string {
	if i >= len(os.Args) {
		die("an argument is missing")
	}
	return os.Args[i]
}

func number(i int, least, most uint64) uint64 {
	n, err := strconv.ParseUint(word(i), 10, 64)
	if err != nil || n < least || n > most {
		die("an argument is out of range")
	}
	return n
}

// together runs work on n goroutines at once.  It adds to s the time from when
// all are ready to when the last has ended.  One of them is the caller itself.
func together(n int, s *span, work func(who int)) {
	if n == 1 {
		s.start()
		work(0)
		s.stop()
		return
	}
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := 0; i < n; i++ {
		ready.Add(1)
		done.Add(1)
		go func(who int) {
			runtime.LockOSThread()
			ready.Done()
			<-start
			work(who)
			done.Done()
		}(i)
	}
	ready.Wait()
	s.start()
	close(start)
	done.Wait()
	s.stop()
}

// statusKiB returns a line of /proc/self/status; see peer_status_kib.
func statusKiB(name string) uint64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		die(err.Error())
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) > 1 && field[0] == name+":" {
			kib, _ := strconv.ParseUint(field[1], 10, 64)
			return kib
		}
	}
	die("no " + name)
	return 0
}

// median sorts the samples, of which there must be at least one.
func median(sample []float64) float64 {
	n := len(sample)

	sort.Float64s(sample)
	return (sample[(n-1)/2] + sample[n/2]) / 2
}

// pauseFigure does what peer_pause_figure does.
func pauseFigure() {
	var m runtime.MemStats

	runtime.ReadMemStats(&m)
	figure("stopped_ms", float64(m.PauseNs[(m.NumGC+255)%256])/1e6)
}

func residentMiB() float64 { return float64(statusKiB("VmRSS")) / 1024 }

// figures is what report prints after the checksum.
var figures string

func figure(name string, value float64) {
	figures += fmt.Sprintf(" %s=%.4g", name, value)
}

func report(value float64, unit string, s *span, checksum uint64) {
	fmt.Printf("%.5g %s %.4f %.4f %d %.3f %016x%s\n", value, unit, s.wall,
		s.cpu, statusKiB("VmHWM"), cpuNow(), checksum, figures)
}

// latency records how long each of many operations took; see latency.h.
const (
	partsLog2 = 6
	parts     = 1 << partsLog2
	powers    = 40
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

func (l *latency) report(n uint64) {
	figure("p50_us", l.rank(n/2))
	figure("p99_us", l.rank(n/100))
	figure("p99.9_us", l.rank(n/1000))
	figure("p99.99_us", l.rank(n/10000))
	figure("max_us", float64(l.longest)/1e3)
}
