// trees.go - see trees.c.  The compiler's write barrier is in every store.
package main

import "runtime"

const leastDepth = 4

type node struct{ left, right *node }

func fromBottom(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{fromBottom(depth - 1), fromBottom(depth - 1)}
}

func fromTop(depth int) *node {
	n := new(node)
	if depth > 0 {
		n.left = fromTop(depth - 1)
		n.right = fromTop(depth - 1)
	}
	return n
}

func (n *node) count() uint64 {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

func main() {
	depth, threads := int(number(1, 6, 26)), int(number(2, 1, 16))
	treeMake := fromBottom
	var s span

	if word(3) == "top" {
		treeMake = fromTop
	}
	s.start()
	nodes := treeMake(depth + 1).count()
	lives := treeMake(depth)
	s.stop()
	counts := make([]uint64, threads)
	together(threads, &s, func(who int) {
		var nodes uint64
		for d := leastDepth; d <= depth; d += 2 {
			for i := who; i < 1<<(depth-d+3); i += threads {
				nodes += treeMake(d).count()
			}
		}
		counts[who] = nodes
	})
	for _, n := range counts {
		nodes += n
	}
	nodes += lives.count()
	runtime.KeepAlive(lives)
	report(s.wall, "s", &s, nodes)
}
