// arrays.go - see arrays.c.
package main

import "runtime"

const (
	places = 64
	least  = 8
	total  = 1 << 20
)

func fill(a []*[2]uint64, number uint64) {
	var leaf *[2]uint64

	for i := range a {
		if i%64 == 0 {
			leaf = &[2]uint64{number + uint64(i)}
		}
		a[i] = leaf
	}
}

func main() {
	most := number(1, least, 1<<20)
	var place [places][]*[2]uint64
	seed, sum, done := uint64(1), uint64(0), uint64(0)
	var s span

	s.start()
	for i := uint64(0); done < total; i++ {
		a := &place[below(&seed, places)]
		kib := least + below(&seed, most-least+1)
		sum *= 31
		if *a != nil {
			sum += (*a)[0][0] ^ (*a)[len(*a)-1][0]
		}
		*a = nil
		*a = make([]*[2]uint64, kib*1024/8)
		fill(*a, i)
		done += kib
	}
	s.stop()
	runtime.KeepAlive(&place)
	report(s.wall*1e9/float64(done), "ns", &s, sum)
}
