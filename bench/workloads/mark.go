// mark.go - see mark.c.
package main

import "runtime"

const (
	collections = 3
	onceMiB     = 1024
	steps       = 1000000
)

type node struct {
	to    [3]*node
	id    uint64
	spare [2]uint64
}

type branch struct {
	left, right *branch
	id, spare   uint64
}

type cell struct {
	next *cell
	leaf *[2]uint64
}

func randomMake(n uint64) func() uint64 {
	nodes := make([]*node, n)
	seed := uint64(1)

	for i := range nodes {
		nodes[i] = &node{id: uint64(i)}
	}
	for i := n - 1; i > 0; i-- {
		k := below(&seed, i+1)
		nodes[i], nodes[k] = nodes[k], nodes[i]
	}
	for i := range nodes {
		nodes[i].to[0] = nodes[(uint64(i)+1)%n]
		nodes[i].to[1] = nodes[below(&seed, n)]
		nodes[i].to[2] = nodes[below(&seed, n)]
	}
	first := nodes[0]
	return func() uint64 {
		m, sum, seed := first, uint64(0), uint64(2)
		for i := 0; i < steps; i++ {
			m = m.to[below(&seed, 3)]
			sum = sum*31 + m.id
		}
		return sum
	}
}

func branchMake(n uint64, id *uint64) *branch {
	if n == 0 {
		return nil
	}
	b := &branch{id: *id}
	*id++
	b.left = branchMake((n-1)/2, id)
	b.right = branchMake(n-1-(n-1)/2, id)
	return b
}

func (b *branch) walk() uint64 {
	if b == nil {
		return 0
	}
	return b.id + b.left.walk() + b.right.walk()
}

func treeMake(n uint64) func() uint64 {
	var id uint64
	root := branchMake(n, &id)
	return root.walk
}

func listMake(n uint64) func() uint64 {
	var first *cell

	for i := uint64(0); i < n/2; i++ {
		first = &cell{first, &[2]uint64{i, 0}}
	}
	return func() uint64 {
		var sum uint64
		for c := first; c != nil; c = c.next {
			sum = sum*31 + c.leaf[0]
		}
		return sum
	}
}

var shapes = map[string]struct {
	size uint64
	make func(n uint64) func() uint64
}{
	"random": {48, randomMake},
	"tree":   {32, treeMake},
	"list":   {16, listMake},
	"array":  {16, arrayMake},
	"hot":    {32, hotMake},
}

type hotLeaf struct {
	hot *[2]uint64
	id  uint64
	_   [2]uint64
}

func arrayMake(n uint64) func() uint64 {
	leaves := make([]*[2]uint64, n)

	for i := range leaves {
		leaves[i] = &[2]uint64{0, uint64(i)}
	}
	return func() uint64 {
		var sum uint64
		for _, l := range leaves {
			sum = sum*31 + l[1]
		}
		return sum
	}
}

func hotMake(n uint64) func() uint64 {
	leaves, hot := make([]*hotLeaf, n), new([2]uint64)

	for i := range leaves {
		leaves[i] = &hotLeaf{hot: hot, id: uint64(i)}
	}
	return func() uint64 {
		var sum uint64
		for _, l := range leaves {
			sum = sum*31 + l.id
		}
		return sum
	}
}

func main() {
	shape, ok := shapes[word(1)]
	if !ok {
		die("no such shape")
	}
	mib, most := number(2, 1, 65536), collections
	if mib >= onceMiB {
		most = 1
	}
	n := mib << 20 / shape.size
	walk := shape.make(n)
	runtime.GC()
	var s span
	var sample []float64
	for i := 0; i < most; i++ {
		var one span
		one.start()
		runtime.GC()
		one.stop()
		sample = append(sample, one.wall)
		s.wall += one.wall
		s.cpu += one.cpu
	}
	seconds := median(sample)
	figure("cpu_ns", s.cpu*1e9/float64(most)/float64(n))
	figure("resident_MiB", residentMiB())
	pauseFigure()
	report(seconds*1e9/float64(n), "ns", &s, walk())
}
