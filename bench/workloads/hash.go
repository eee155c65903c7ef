// hash.go - see hash.c.  The same chains, not Go's own map.
package main

import "runtime"

const (
	operations = 4000000
	leastLog2  = 4
)

type entry struct {
	next   *entry
	key    uint64
	number *[2]uint64
	_      uint64
}

type table struct {
	chain []*entry
	log2  uint
	n     uint64
}

func (t *table) chainOf(key uint64) **entry {
	return &t.chain[key*0x9e3779b97f4a7c15>>(64-t.log2)]
}

func (t *table) grow() {
	old := t.chain

	t.log2++
	t.chain = make([]*entry, 1<<t.log2)
	for _, e := range old {
		for e != nil {
			next, first := e.next, t.chainOf(e.key)
			e.next = *first
			*first = e
			e = next
		}
	}
}

func (t *table) insert(key, n uint64) {
	if t.n>>t.log2 != 0 {
		t.grow()
	}
	first := t.chainOf(key)
	*first = &entry{next: *first, key: key, number: &[2]uint64{n, 0}}
	t.n++
}

func (t *table) meet(key, r uint64) uint64 {
	place := t.chainOf(key)

	for *place != nil && (*place).key != key {
		place = &(*place).next
	}
	if *place == nil {
		t.insert(key, r)
		return 0
	}
	found := (*place).number[0]
	if r&1 != 0 {
		*place = (*place).next
		t.n--
	} else {
		(*place).number = &[2]uint64{r, 0}
	}
	return found
}

func main() {
	keys := 2 * number(1, 16, 1<<28)
	t := table{log2: leastLog2, chain: make([]*entry, 1<<leastLog2)}
	seed, sum := uint64(1), uint64(0)
	var s span

	s.start()
	for i := 0; i < operations; i++ {
		key := below(&seed, keys)
		sum = sum*31 + t.meet(key, random(&seed))
	}
	s.stop()
	runtime.KeepAlive(&t)
	report(s.wall*1e9/operations, "ns", &s, sum+t.n)
}
