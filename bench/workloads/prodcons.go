// prodcons.go - see prodcons.c.
package main

import (
	"runtime"
	"sync/atomic"
)

const (
	messages = 4000000
	places   = 1024
	spins    = 1000
)

// A message has a pointer, so that it is scanned as on the other heaps.
type message struct {
	number uint64
	words  [5]uint64
	square uint64
	next   *message
}

type ring struct {
	place     [places]*message
	_         [128]byte
	made      uint64
	takenSeen uint64
	_         [128]byte
	taken     uint64
	madeSeen  uint64
	_         [128]byte
	sum       uint64
}

func moved(counter *uint64, old uint64) uint64 {
	for i := 0; ; i++ {
		if now := atomic.LoadUint64(counter); now != old {
			return now
		}
		if i%spins == spins-1 {
			runtime.Gosched()
		}
	}
}

func (r *ring) produce() {
	for i := uint64(0); i < messages; i++ {
		m := &message{number: i, square: i * i}
		if i-r.takenSeen == places {
			r.takenSeen = moved(&r.taken, r.takenSeen)
		}
		r.place[i%places] = m
		atomic.StoreUint64(&r.made, i+1)
	}
}

func (r *ring) consume() {
	for i := uint64(0); i < messages; i++ {
		if i == r.madeSeen {
			r.madeSeen = moved(&r.made, i)
		}
		m := r.place[i%places]
		r.place[i%places] = nil
		atomic.StoreUint64(&r.taken, i+1)
		r.sum = r.sum*31 + (m.number ^ m.square) + m.words[2]
	}
}

func main() {
	r := new(ring)
	var s span

	together(2, &s, func(who int) {
		if who == 0 {
			r.produce()
		} else {
			r.consume()
		}
	})
	report(messages/s.wall/1e6, "Mops", &s, r.sum)
}
