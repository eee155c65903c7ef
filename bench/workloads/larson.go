// larson.go - see larson.c.  The objects are free of pointers here: a word of
// a scanned one could not hold a number.
package main

import (
	"sync"
)

const (
	rounds     = 10
	operations = 6000000
)

type table struct {
	slot      []*uint64
	seed, sum uint64
}

func (t *table) churn(n int, least, steps uint64) {
	seed, sum, slots := t.seed, t.sum, uint64(len(t.slot))

	for i := 0; i < n; i++ {
		r := random(&seed)
		slot := &t.slot[(r>>32)*slots>>32]
		p := &make([]uint64, least/8+((r&0xffff)*steps>>16))[0]
		if *slot != nil {
			sum += **slot
		}
		*p = r
		*slot = p
	}
	t.seed, t.sum = seed, sum
}

// barrier makes all n wait until the last has come.
type barrier struct {
	sync.Mutex
	moved       *sync.Cond
	n, here, no int
}

func newBarrier(n int) *barrier {
	b := &barrier{n: n}
	b.moved = sync.NewCond(b)
	return b
}

func (b *barrier) wait() {
	b.Lock()
	defer b.Unlock()
	no := b.no
	if b.here++; b.here == b.n {
		b.here = 0
		b.no++
		b.moved.Broadcast()
		return
	}
	for no == b.no {
		b.moved.Wait()
	}
}

func main() {
	threads, slots := int(number(1, 1, 16)), number(2, 1, 1<<24)
	least, most := number(3, 16, 4096), number(4, 16, 4096)
	round := newBarrier(threads)
	tables := make([]*table, threads)
	var s span

	for i := range tables {
		tables[i] = &table{seed: uint64(i), slot: make([]*uint64, slots)}
	}
	together(threads, &s, func(who int) {
		for r := 0; r < rounds; r++ {
			tables[(who+r)%threads].churn(operations/rounds/threads,
				least, (most-least)/8+1)
			round.wait()
		}
	})
	var sum uint64
	for _, t := range tables {
		sum += t.sum
	}
	report(operations/s.wall/1e6, "Mops", &s, sum)
}
