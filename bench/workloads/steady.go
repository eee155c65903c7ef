// steady.go - see steady.c.  Scanned objects are full of pointers to static
// bytes.  These have the values that the objects' own bytes have in C.
package main

import "unsafe"

const (
	least     = 16
	mean      = 1032
	turnovers = 4
)

var static [256]byte

// entry's size is odd if the object is scanned.
type entry struct {
	object unsafe.Pointer
	size   uint64
}

type table struct {
	entry           []entry
	seed, sum, live uint64
}

func (e *entry) fill(r uint64) {
	size, fill := least+8*((r>>8)%255), byte(1+r%64)

	if r&128 != 0 {
		words := make([]*byte, size/8)
		for i := range words {
			words[i] = &static[fill]
		}
		e.object, e.size = unsafe.Pointer(&words[0]), size|1
		return
	}
	bytes := make([]byte, size)
	for i := range bytes {
		bytes[i] = fill
	}
	e.object, e.size = unsafe.Pointer(&bytes[0]), size
}

func (e *entry) ends() uint64 {
	size := e.size &^ 1

	if e.size&1 != 0 {
		last := unsafe.Add(e.object, size-8)
		return uint64(**(**byte)(e.object)) + uint64(**(**byte)(last))
	}
	last := unsafe.Add(e.object, size-1)
	return uint64(*(*byte)(e.object)) + uint64(*(*byte)(last))
}

func (t *table) replace(i uint64) {
	e := &t.entry[i]

	if e.object != nil {
		t.sum = t.sum*31 + e.ends()
		t.live -= e.size &^ 1
		e.object = nil
	}
	e.fill(random(&t.seed))
	t.live += e.size &^ 1
}

func main() {
	n := number(1, 1, 65536) << 20 / mean
	t := &table{entry: make([]entry, n), seed: 1, live: 16 * n}
	var s span

	for i := range static {
		static[i] = byte(i)
	}
	for i := uint64(0); i < n; i++ {
		t.replace(i)
	}
	s.start()
	for i := uint64(0); i < turnovers*n; i++ {
		t.replace(below(&t.seed, n))
	}
	s.stop()
	report(float64(statusKiB("VmHWM"))*1024/float64(t.live), "x", &s, t.sum)
}
