// interp.go - see interp.c.  A value is one pointer here too: a number points
// to an object of its own in a table that is made before.
package main

import "unsafe"

const (
	tableLen = 100000
	deep     = 20000
	mask     = 0xffff
)

const (
	tagString = iota
	tagClosure
	tagNumber
)

const (
	opAdd = iota
	opMix
	opUse
)

// value is a *str, *closure or *num, each of which begins with its tag, or in
// a frame a *cons.
type value = unsafe.Pointer

type num struct{ tag, n uint64 }

var numbers [mask + 1]num

// The characters of a str follow it in the same object.
type str struct{ tag, length uint64 }

type closure struct {
	tag, op uint64
	env     *frame
	held    value
}

type cons struct {
	car value
	cdr *cons
}

type frame struct {
	up   *frame
	fn   *closure
	slot [2]value
}

type smallFrame struct {
	frame
	_ [2]value
}

type largeFrame struct {
	frame
	_ [8]value
}

func tagOf(v value) uint64 { return *(*uint64)(v) }

func num16(n uint64) value { return value(&numbers[n&mask]) }

func numOf(v value) uint64 { return (*num)(v).n }

func small(up *frame, fn *closure) *frame {
	f := new(smallFrame)
	f.up, f.fn = up, fn
	return &f.frame
}

func large(up *frame, fn *closure) *frame {
	f := new(largeFrame)
	f.up, f.fn = up, fn
	return &f.frame
}

func strMake(n uint64) value {
	length := 8 + n%57
	p := value(&make([]byte, 16+length)[0])
	s := (*str)(p)
	s.tag, s.length = tagString, length
	text := unsafe.Slice((*byte)(unsafe.Add(p, 16)), length)
	for i := range text {
		text[i] = byte('a' + n%26)
	}
	return p
}

func mix(f *frame) value {
	n := numOf(f.slot[0])

	switch n % 4 {
	case 0:
		return strMake(n)
	case 1:
		return value(&closure{tagClosure, opAdd, f, f.slot[0]})
	}
	return f.slot[0]
}

func use(f *frame) value {
	v := f.slot[0]

	switch tagOf(v) {
	case tagNumber:
		return v
	case tagString:
		s := (*str)(v)
		last := *(*byte)(unsafe.Add(v, 15+s.length))
		return num16(s.length*256 + uint64(last))
	}
	return apply((*closure)(v), num16(7))
}

func apply(fn *closure, argument value) value {
	f := small(fn.env, fn)

	f.slot[0] = argument
	switch fn.op {
	case opAdd:
		f.slot[1] = fn.held
		return num16(numOf(f.slot[0]) + numOf(f.slot[1]))
	case opMix:
		return mix(f)
	}
	return use(f)
}

func iotaList(up *frame, first, n uint64) *cons {
	var list *cons
	f := up

	for i := uint64(0); i < n; i++ {
		f = small(f, nil)
		f.slot[0] = num16(first + i)
	}
	for ; f != up; f = f.up {
		list = &cons{f.slot[0], list}
	}
	return list
}

func mapList(up *frame, fn *closure, list *cons) *cons {
	var result *cons
	f := up

	for ; list != nil; list = list.cdr {
		f = large(f, fn)
		f.slot[0] = value(list)
	}
	for ; f != up; f = f.up {
		f.slot[1] = apply(fn, (*cons)(f.slot[0]).car)
		result = &cons{f.slot[1], result}
	}
	return result
}

func fold(list *cons) uint64 {
	var sum uint64

	for ; list != nil; list = list.cdr {
		sum = sum*31 + numOf(list.car)
	}
	return sum
}

type machine struct {
	top           *frame
	add, mix, use *closure
	table, cursor *cons
}

func (m *machine) store(list *cons) {
	for i := 0; list != nil; list, i = list.cdr, i+1 {
		if i%4 != 0 {
			continue
		}
		m.cursor.car = list.car
		if m.cursor = m.cursor.cdr; m.cursor == nil {
			m.cursor = m.table
		}
	}
}

func (m *machine) round(first, n uint64) uint64 {
	list := mapList(m.top, m.add, iotaList(m.top, first, n))
	mixed := mapList(m.top, m.mix, list)

	m.store(mixed)
	return fold(mapList(m.top, m.use, mixed))
}

func newMachine() *machine {
	m := &machine{top: small(nil, nil)}
	m.add = &closure{tagClosure, opAdd, m.top, num16(1)}
	m.mix = &closure{tagClosure, opMix, m.top, num16(0)}
	m.use = &closure{tagClosure, opUse, m.top, num16(0)}
	m.table = iotaList(m.top, 0, tableLen)
	m.cursor = m.table
	return m
}

func main() {
	rounds := number(1, 1, 1000000)
	seed, sum := uint64(1), uint64(0)
	var s span

	for i := range numbers {
		numbers[i] = num{tagNumber, uint64(i)}
	}
	s.start()
	m := newMachine()
	for i := uint64(0); i < rounds; i++ {
		r := random(&seed)
		n := 50 + (r>>32)%951
		if i%64 == 63 {
			n = deep
		}
		sum = sum*31 + m.round(r, n)
	}
	s.stop()
	for c := m.table; c != nil; c = c.cdr {
		if tagOf(c.car) == tagNumber {
			sum += numOf(c.car)
		} else {
			sum += tagOf(c.car)
		}
	}
	report(s.wall, "s", &s, sum)
}
