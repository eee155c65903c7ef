// lfstack.pml - the lock-free stack, its tags, and heads that are reset.
//
// Models runtime/os/lfstack.c, and how runtime/spans/mcentral.c uses it.  Two
// threads pop and push.  The cycle of gc/cycle/cycle.c empties the stack and
// pushes some of the nodes again in another order.  The contract of
// lfstack_reset: no push is under way, and no other thread changes the stack
// meanwhile.  But a popper that has read the head may come late; then it must
// fail.
//
// One thread owns a node, or the node is in the stack.  The link of a node that
// a thread owns is garbage, because its owner overwrites it.
//
// Mutants, each of which must be found:
// mutant NO_TAG: the head is the address alone
// mutant NARROW_TAG: the tag has one bit and wraps
// mutant RESET_FORGETS_TAG: an emptied head begins at tag 0 again
// mutant POP_IN_TWO: a pop compares, then stores
// mutant PUSH_IN_TWO: a push compares, then stores
// mutant LINK_LATE: the link is visible after the node

#define NODES 3 // 1 .. NODES
#define NONE 0
#ifdef NARROW_TAG
#define TAGS 2
#else
#define TAGS 256
#endif

// A packed word is a node and a tag: struct lfstack, struct lfnode.
byte head, head_tag;
byte below[NODES + 1], below_tag[NODES + 1];

// Ghosts.
bool inside[NODES + 1]; // the stack
bool stopped;
byte pushing; // pushes under way

// next_head raises the tag of the head that is replaced.
#ifdef NO_TAG
#define NEXT_TAG(tag) 0
#else
#define NEXT_TAG(tag) (((tag) + 1) % TAGS)
#endif

// atomic_u64_cas on the head.
// C: lfstack_push, lfstack_pop, next_head
// in: pop
inline cas(old, tag, node, done)
{
	done = (head == old && head_tag == tag);
	if
	:: done -> head = node; head_tag = NEXT_TAG(tag)
	:: else
	fi
}

// lfstack_push of a node that the caller owns.
// C: lfstack_push
// at: LFSTACK_PUSH
inline push(node, old, tag, done)
{
	atomic { !stopped -> pushing++ }
	do
	::
		// One word is loaded, and stored as the link.
		atomic { old = head; tag = head_tag }
#ifndef LINK_LATE
		atomic { below[node] = old; below_tag[node] = tag }
#endif
#ifdef PUSH_IN_TWO
		done = (head == old && head_tag == tag);
		if
		:: done ->
			atomic {
				head = node;
				head_tag = NEXT_TAG(tag);
				inside[node] = true
			}
		:: else
		fi;
#else
		atomic {
			cas(old, tag, node, done);
			if
			:: done -> assert(!inside[node]); inside[node] = true
			:: else
			fi
		}
#endif
#ifdef LINK_LATE
		below[node] = old;
#endif
		if
		:: done -> break
		:: else
		fi
	od;
	atomic { pushing--; old = NONE; tag = 0; done = false }
}

// lfstack_pop; node is NONE if the stack is empty.  Each access may come after
// a stop, but none during one.
// C: lfstack_pop
// at: LFSTACK_POP
inline pop(node, link, tag, done)
{
	do
	::
		atomic { !stopped -> node = head; tag = head_tag }
		if
		:: node == NONE -> break
		:: else
		fi;
		atomic { !stopped -> link = below[node] }
#ifdef POP_IN_TWO
		atomic { !stopped -> done = (head == node && head_tag == tag) }
		if
		:: done ->
			atomic {
				assert(inside[node]);
				head = link;
				head_tag = NEXT_TAG(tag);
				inside[node] = false
			}
		:: else
		fi;
#else
		atomic {
			!stopped;
			cas(node, tag, link, done);
			if
			:: done -> assert(inside[node]); inside[node] = false
			:: else
			fi
		}
#endif
		if
		:: done -> break
		:: else
		fi
	od;
	atomic { link = NONE; tag = 0; done = false }
}

// Pops up to two nodes and pushes one or both, as a P does with spans that it
// caches and retires.
// C: mcentral_pop, mcentral_push
// in: pop
proctype User()
{
	byte first, second, word, tag;
	bool done;

	pop(first, word, tag, done);
	if
	:: first != NONE -> pop(second, word, tag, done)
	:: true
	fi;
	if
	:: second != NONE ->
		below[second] = second; // overwritten
		if
		:: true // kept by its P, or freed
		:: push(second, word, tag, done)
		fi
	:: else
	fi;
	if
	:: first != NONE -> push(first, word, tag, done)
	:: else
	fi
}

// lfstack_reset in a stop, by mcentral_reset; then sweeping pushes.
// C: lfstack_reset, mcentral_reset
// at: LFSTACK_POP
proctype Cycle()
{
	byte node, word, tag;
	bool mine[NODES + 1];
	bool done;

	atomic { pushing == 0 -> stopped = true }
	atomic { word = head; tag = head_tag }
	atomic {
		head = NONE;
#ifdef RESET_FORGETS_TAG
		head_tag = 0;
#else
		head_tag = NEXT_TAG(tag);
#endif
		for (node : 1 .. NODES) {
			mine[node] = inside[node];
			inside[node] = false
		}
		word = NONE;
		tag = 0;
		stopped = false
	}
	// In any order, and not all.
	do
	:: atomic { mine[1] -> mine[1] = false; node = 1 };
		push(node, word, tag, done)
	:: atomic { mine[2] -> mine[2] = false; node = 2 };
		push(node, word, tag, done)
	:: atomic { mine[3] -> mine[3] = false; node = 3 };
		push(node, word, tag, done)
	:: break
	od
}

// The stack holds what it should, from top to bottom.
// C: none
inline check()
{
	byte at, n;

	at = head;
	do
	:: at != NONE ->
		assert(inside[at]);
		n++;
		assert(n <= NODES);
		at = below[at]
	:: else -> break
	od;
	assert(n == inside[1] + inside[2] + inside[3])
}

init
{
	atomic {
		below[1] = NONE;
		below[2] = 1;
		below_tag[2] = NEXT_TAG(0);
		below[3] = 2;
		below_tag[3] = NEXT_TAG(below_tag[2]);
		head = 3;
		head_tag = NEXT_TAG(below_tag[3]);
		inside[1] = true;
		inside[2] = true;
		inside[3] = true;
		run User();
		run User();
		run Cycle()
	}
	_nr_pr == 1;
	atomic { check() }
}
