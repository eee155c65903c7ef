// gcbench.go - see gcbench.c.
package main

import (
	"math"
	"runtime"
)

const (
	leastDepth = 4
	mostDepth  = 16
	arrayLen   = 500000
)

type node struct {
	left, right *node
	i, j        int64
}

func treeSize(depth int) uint64 { return 2<<depth - 1 }

func (n *node) populate(depth int) {
	if depth == 0 {
		return
	}
	n.left = new(node)
	n.right = new(node)
	n.left.populate(depth - 1)
	n.right.populate(depth - 1)
}

func topDown(depth int) *node {
	n := new(node)
	n.populate(depth)
	return n
}

func bottomUp(depth int) *node {
	if depth == 0 {
		return new(node)
	}
	return &node{left: bottomUp(depth - 1), right: bottomUp(depth - 1)}
}

func (n *node) count() uint64 {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

// drop visits only the left edge.
func (n *node) drop() uint64 {
	var depth uint64

	for m := n; m.left != nil; m = m.left {
		depth++
	}
	return depth
}

func build(depth, stretch int) uint64 {
	trees := 2 * treeSize(stretch) / treeSize(depth)
	var sum uint64

	for i := uint64(0); i < trees; i++ {
		sum += topDown(depth).drop()
	}
	for i := uint64(0); i < trees; i++ {
		sum += bottomUp(depth).drop()
	}
	return sum
}

func main() {
	depth := int(number(1, 4, 24))
	var s span

	s.start()
	sum := bottomUp(depth + 1).drop()
	lives := topDown(depth)
	array := make([]float64, arrayLen)
	for i := range array {
		array[i] = 1 / float64(i+1)
	}
	for d := leastDepth; d <= mostDepth; d += 2 {
		sum += build(d, depth+1)
	}
	s.stop()
	var total float64
	for _, x := range array {
		total += x
	}
	sum += lives.count() ^ math.Float64bits(total)
	runtime.KeepAlive(lives)
	report(s.wall, "s", &s, sum)
}
