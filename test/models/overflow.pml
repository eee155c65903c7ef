// overflow.pml - pages that must be scanned again, while others mark.
//
// Models gc/mark/overflow.c, scan_overflow, and the rounds of finish_overflow
// in gc/mark/mark.c.  Markers take objects from one set; marking.pml shows how
// they share them.  There may be no room for what an object refers to; then the
// page of the object is noted.  Any marker may lower the flag and take bits at
// any time, whereas a marker of the C code does this only in rounds.  One
// object may be scanned again only by the opener, when no other marker is busy.
//
// A mark may be kept back by its marker; a scan of a page does not see it.
//
// Mutants, each of which must be found:
// mutant OVERFLOW_PLAIN: bits are taken by a load and a store
// mutant FLAG_LATE: the flag is lowered when bits were taken
// mutant FLAG_EARLY: the flag is raised before the bit is set
// mutant BIT_EARLY: the bit is set before the mark is shown
// mutant LEFT_SILENT: the opener is not told of a bit that was put back
// mutant RESCAN_ANY: any marker scans the opener's object again
// mutant OVER_RAISED: marking ends without a look at the flag

#define MARKERS 2 // the opener is 0
#define OPENER 0

// Objects are bits; 8 is the opener's.  1 is the root.
#define ALL 31
#define SERIAL 8
#define CHILDREN(x)                                                            \
	((x) == 1 -> 6 : ((x) == 2 -> 8 : ((x) == 4 -> 8 : ((x) == 8 -> 16 : 0))))

// Pages, as bits of one word: 1 has the objects 1 and 2, 2 has 4 and 16, 4 has
// 8.
#define PAGE(x) ((x) & 3 -> 1 : ((x) & 20 -> 2 : 4))
#define OBJECTS(pages)                                                         \
	(((pages) & 1 -> 3 : 0) | ((pages) & 2 -> 20 : 0) |                    \
	 ((pages) & 4 -> 8 : 0))

byte objects = 1;    // to be marked from
byte busy;	     // markers, as bits
byte mark;	     // marks that all see
byte kept[MARKERS];  // marks that one marker sees
byte bits;	     // pages
bool raised, left;   // the flags
byte noted;	     // objects whose references had no room, so far
bool over;
bool tracing;	     // the opener's object is just being traced

// grey_publish_object, overflow_set.
// C: scan_overflow, grey_publish_object, overflow_set, overflow_raise
// at: SCAN_OVERFLOW, OVERFLOW_SET
inline note(me, x)
{
#ifdef BIT_EARLY
	bits = bits | PAGE(x);
	atomic { mark = mark | kept[me]; kept[me] = 0 };
	raised = true
#else
	atomic { mark = mark | kept[me]; kept[me] = 0 };
#ifdef FLAG_EARLY
	raised = true;
	bits = bits | PAGE(x)
#else
	bits = bits | PAGE(x);
	raised = true
#endif
#endif
}

// A marker marks an object, and scans it or notes it.
// C: drain_stack, scan_wide
// in: note
inline mark_one(me, x)
{
	if
	:: !((mark | kept[me]) & x) ->
		atomic {
			if
			:: x == SERIAL -> mark = mark | x; tracing = true
			:: else -> kept[me] = kept[me] | x
			fi
		}
		if
		:: atomic {
			true -> // there is room
			objects = objects | CHILDREN(x)
		   }
		:: atomic { !(noted & x) && CHILDREN(x) != 0 ->
			noted = noted | x
		   }
		   note(me, x)
		fi;
		atomic {
			if
			:: x == SERIAL -> tracing = false
			:: else
			fi
		}
	:: else
	fi
}

// The marked objects of pages lead to others.
// C: rescan_page, rescan_next, rescan_object
// in: take
inline rescan(pages)
{
	atomic {
		x = OBJECTS(pages) & mark;
		if
		:: x & SERIAL -> assert(!tracing)
		:: else
		fi;
		objects = objects | ((x & 1 -> CHILDREN(1) : 0) & ~mark);
		objects = objects | ((x & 2 -> CHILDREN(2) : 0) & ~mark);
		objects = objects | ((x & 4 -> CHILDREN(4) : 0) & ~mark);
		objects = objects | ((x & 8 -> CHILDREN(8) : 0) & ~mark);
		x = 0
	}
}

// C: overflow_take, overflow_lower
// at: OVERFLOW_TAKE
inline take(pages)
{
#ifdef OVERFLOW_PLAIN
	pages = bits;
	bits = 0
#else
	atomic { pages = bits; bits = 0 }
#endif
}

// C: overflow_leave, rescan_some
// in: take
inline leave(me, pages)
{
	if
#ifndef RESCAN_ANY
	:: pages & PAGE(SERIAL) ->
		bits = bits | PAGE(SERIAL);
#ifndef LEFT_SILENT
		left = true;
#endif
		pages = pages & ~PAGE(SERIAL)
#endif
	:: else
	fi
}

// A round of a marker, which is busy.
// C: rescan_pages, finish_overflow
// in: take
inline round(me, pages)
{
#ifdef FLAG_LATE
	take(pages);
	raised = false;
#else
	raised = false;
	take(pages);
#endif
	leave(me, pages);
	rescan(pages);
	pages = 0
}

// round_left does what the opener alone may do, when no other marker is busy.
// C: rescan_left, overflow_lower_left
// in: take
inline round_left(pages)
{
	left = false;
	take(pages);
	rescan(pages);
	pages = 0
}

#define IDLE(me) (!(busy & (1 << (me))))
#define OTHERS(me) (busy & ~(1 << (me)))

// C: finish, finish_overflow
// at: OVERFLOW_TAKE
proctype Marker(byte me)
{
	byte x, pages;

	do
	:: atomic { objects & ~SERIAL ->
		busy = busy | (1 << me);
		if
		:: objects & 1 -> x = 1
		:: objects & 2 -> x = 2
		:: objects & 4 -> x = 4
		:: objects & 16 -> x = 16
		fi;
		objects = objects & ~x
	   }
	   mark_one(me, x);
	   x = 0
	:: atomic { objects & SERIAL && me == OPENER ->
		busy = busy | (1 << me);
		x = SERIAL;
		objects = objects & ~x
	   }
	   mark_one(me, x);
	   x = 0
	:: atomic { raised && !over -> busy = busy | (1 << me) }
	   round(me, pages)
	:: atomic { me == OPENER && left && !raised && objects == 0 &&
		    OTHERS(me) == 0 ->
		busy = busy | (1 << me)
	   }
	   round_left(pages)
	:: atomic { kept[me] != 0 -> mark = mark | kept[me]; kept[me] = 0 }
	:: atomic { !IDLE(me) && kept[me] == 0 ->
		busy = busy & ~(1 << me)
	   }
#ifdef OVER_RAISED
	:: atomic { me == OPENER && objects == 0 && busy == 0 && !over ->
#else
	:: atomic { me == OPENER && objects == 0 && busy == 0 && !over &&
		    !raised && !left ->
#endif
		assert(kept[0] == 0 && kept[1] == 0);
		assert(mark == ALL);
		assert(bits == 0 && !raised && !left);
		over = true
	   }
	:: over -> break
	od
}

init
{
	atomic {
		run Marker(0);
		run Marker(1)
	}
}
