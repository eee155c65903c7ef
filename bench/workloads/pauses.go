// pauses.go - see pauses.c.
package main

import "time"

const (
	group    = 16
	leastMiB = 1024
)

type node struct {
	left, right *node
	id          uint64
	_           [5]uint64
}

func treeMake(n uint64, id *uint64) *node {
	if n == 0 {
		return nil
	}
	left := treeMake((n-1)/2, id)
	right := treeMake(n-1-(n-1)/2, id)
	m := &node{left: left, right: right, id: *id}
	*id++
	return m
}

func (n *node) sum() uint64 {
	if n == nil {
		return 0
	}
	return n.id*31 + n.left.sum() + n.right.sum()
}

var (
	kept  [group]*node
	times latency
)

func churn(groups uint64) {
	began := time.Now()

	for i := uint64(0); i < groups; i++ {
		for k := range kept {
			kept[k] = &node{id: uint64(k)}
		}
		ended := time.Now()
		times.add(uint64(ended.Sub(began)))
		began = ended
	}
}

func main() {
	mib, id := number(1, 1, 1<<20), uint64(0)
	garbage := mib * 5 / 2
	var s span

	if garbage < leastMiB {
		garbage = leastMiB
	}
	groups := garbage << 20 / (group * 64)
	root := treeMake(mib<<20/64, &id)
	s.start()
	churn(groups)
	s.stop()
	times.report(groups)
	report(float64(times.longest)/1e6, "ms", &s, root.sum())
}
