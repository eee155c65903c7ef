// The stack without locks keeps every node, whichever threads push and pop.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/lfstack.h"
#include "test/harness/death.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

enum { THREADS = 4, NNODES = 64 };
enum { ADDR_WIDTH = 64 - LFSTACK_TAG_BITS };
#define TAG_COUNT (UINT64_C(1) << LFSTACK_TAG_BITS)

// The contents of a node are not atomic: only the operations of the stack order
// them between threads.
struct item {
	struct lfnode node;
	uint64_t holder; // 0 on the stack, otherwise its thread's number
	uint64_t npops;
} __attribute__((aligned(LFSTACK_ALIGN)));

static struct lfstack stack;
static struct item items[NNODES];

static uint64_t head_word(void)
{
	return atomic_u64_load_relaxed(&stack.head);
}

static uint64_t head_tag(void)
{
	return head_word() >> ADDR_WIDTH;
}

static void set_tag(uint64_t tag)
{
	atomic_u64_store_relaxed(&stack.head, tag << ADDR_WIDTH);
}

GROUP(lfstack, .timeout = 120);

TEST(the_last_pushed_comes_first)
{
	ck_assert(!lfstack_top(&stack));
	ck_assert_ptr_null(lfstack_pop(&stack));
	ck_assert_ptr_null(lfstack_top(&stack));
	for (int i = 0; i < NNODES; i++)
		lfstack_push(&stack, &items[i].node);
	ck_assert(lfstack_top(&stack) != NULL);
	for (int i = NNODES; i-- > 0;)
		ck_assert_ptr_eq(lfstack_pop(&stack), &items[i].node);
	ck_assert(!lfstack_top(&stack));
	ck_assert_ptr_null(lfstack_pop(&stack));
}

TEST(a_walk_sees_every_node_from_the_top)
{
	int n = NNODES;

	for (int i = 0; i < NNODES; i++)
		lfstack_push(&stack, &items[i].node);
	for (struct lfnode *node = lfstack_top(&stack); node;
	     node = lfstack_below(node))
		ck_assert_ptr_eq(node, &items[--n].node);
	ck_assert_int_eq(n, 0);
	ck_assert_ptr_eq(lfstack_pop(&stack), &items[NNODES - 1].node);
}

TEST(every_change_raises_the_tag)
{
	uint64_t tag = head_tag();

	lfstack_push(&stack, &items[0].node);
	ck_assert_uint_eq(head_tag(), ++tag);
	lfstack_push(&stack, &items[1].node);
	ck_assert_uint_eq(head_tag(), ++tag);
	lfstack_pop(&stack);
	ck_assert_uint_eq(head_tag(), ++tag);
	lfstack_reset(&stack);
	ck_assert_uint_eq(head_tag(), ++tag);
	ck_assert(!lfstack_top(&stack));
	lfstack_reset(&stack);
	ck_assert_uint_eq(head_tag(), ++tag);
	ck_assert_ptr_null(lfstack_pop(&stack));
	ck_assert_uint_eq(head_tag(), tag);
}

TEST(a_wrapping_tag_harms_no_address)
{
	set_tag(TAG_COUNT - 2);
	lfstack_push(&stack, &items[0].node);
	ck_assert_uint_eq(head_tag(), TAG_COUNT - 1);
	lfstack_push(&stack, &items[1].node);
	ck_assert_uint_eq(head_tag(), 0);
	ck_assert_ptr_eq(lfstack_top(&stack), &items[1].node);
	ck_assert_ptr_eq(lfstack_below(&items[1].node), &items[0].node);
	ck_assert_ptr_eq(lfstack_pop(&stack), &items[1].node);
	ck_assert_ptr_eq(lfstack_pop(&stack), &items[0].node);
	ck_assert_ptr_null(lfstack_pop(&stack));
	ck_assert_uint_eq(head_tag(), 2);
}

// The highest user addresses differ from each other only in bits beside the
// tag; packing must neither lose such a bit nor spill one into the tag.  The
// test does not touch nodes there, so the head is made by hand.
TEST(the_highest_address_packs)
{
	uintptr_t highest = (UINT64_C(1) << LFSTACK_ADDR_BITS) - LFSTACK_ALIGN;

	atomic_u64_store_relaxed(&stack.head,
				 UINT64_C(5) << ADDR_WIDTH | highest >> 6);
	ck_assert_uint_eq((uintptr_t)lfstack_top(&stack), highest);
	ck_assert_uint_eq(head_tag(), 5);
	// The address comes back whole as a link below a node, too.
	lfstack_push(&stack, &items[0].node);
	ck_assert_uint_eq((uintptr_t)lfstack_below(&items[0].node), highest);
	ck_assert_ptr_eq(lfstack_pop(&stack), &items[0].node);
	ck_assert_uint_eq((uintptr_t)lfstack_top(&stack), highest);
	ck_assert_uint_eq(head_tag(), 7);
}

// late_pop is the second half of a pop that began when the head was seen and
// the node below its top was below.
static bool late_pop(uint64_t seen, const struct lfnode *below)
{
	uint64_t tag = (seen >> ADDR_WIDTH) + 1;

	return atomic_u64_cas_relaxed(
	    &stack.head, seen, tag << ADDR_WIDTH | (uintptr_t)below >> 6);
}

// C, B, A are on the stack.  A popper sees A above B and is delayed.  Other
// threads pop A and B and push A.  If the popper succeeded, B, which is in use,
// would be on the stack.
TEST(a_pop_that_was_overtaken_fails)
{
	struct lfnode *a = &items[0].node, *b = &items[1].node;
	struct lfnode *c = &items[2].node;

	lfstack_push(&stack, c);
	lfstack_push(&stack, b);
	lfstack_push(&stack, a);
	uint64_t seen = head_word();
	struct lfnode *below = lfstack_below(lfstack_top(&stack));
	ck_assert_ptr_eq(below, b);

	ck_assert_ptr_eq(lfstack_pop(&stack), a);
	ck_assert_ptr_eq(lfstack_pop(&stack), b);
	lfstack_push(&stack, a);
	ck_assert_ptr_eq(lfstack_top(&stack), a); // the address is the same

	ck_assert(!late_pop(seen, below));
	ck_assert_ptr_eq(lfstack_pop(&stack), a);
	ck_assert_ptr_eq(lfstack_pop(&stack), c);
	ck_assert_ptr_null(lfstack_pop(&stack));

	// Without a delay, the same second half succeeds.
	lfstack_push(&stack, b);
	lfstack_push(&stack, a);
	ck_assert(late_pop(head_word(), b));
	ck_assert_ptr_eq(lfstack_pop(&stack), b);
}

// A popper from before a reset fails, even when its node is on top again.
TEST(a_pop_from_before_a_reset_fails)
{
	struct lfnode *a = &items[0].node, *b = &items[1].node;

	lfstack_push(&stack, b);
	lfstack_push(&stack, a);
	uint64_t seen = head_word();

	lfstack_reset(&stack);
	ck_assert(!late_pop(seen, b));
	lfstack_push(&stack, b);
	ck_assert(!late_pop(seen, b));
	lfstack_push(&stack, a);
	ck_assert(!late_pop(seen, b));
	ck_assert_ptr_eq(lfstack_pop(&stack), a);
	ck_assert_ptr_eq(lfstack_pop(&stack), b);
	ck_assert(!lfstack_top(&stack));
}

TEST(the_stack_outlives_all_tags)
{
	uint64_t wrong = 0;

	lfstack_push(&stack, &items[0].node);
	for (uint64_t i = 0; i < TAG_COUNT; i++) {
		lfstack_push(&stack, &items[1].node);
		wrong += lfstack_pop(&stack) != &items[1].node;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(head_tag(), 1); // it wrapped twice
	ck_assert_ptr_eq(lfstack_pop(&stack), &items[0].node);
	ck_assert(!lfstack_top(&stack));
}

// ---- threads ----

struct worker {
	pthread_t thread;
	uint64_t number; // from 1
	struct rng rng;
	uint64_t npops;
	uint64_t wrong; // nodes that a thread held already
};

static struct item *item_of(struct lfnode *node)
{
	return (struct item *)node;
}

static void take(struct worker *w, struct item **held, unsigned *nheld)
{
	struct lfnode *node = lfstack_pop(&stack);

	if (!node)
		return;
	struct item *item = item_of(node);
	w->wrong += item->holder != 0;
	item->holder = w->number;
	item->npops++;
	w->npops++;
	held[(*nheld)++] = item;
}

static void give(struct worker *w, struct item **held, unsigned *nheld)
{
	unsigned i = (unsigned)rng_below(&w->rng, *nheld);
	struct item *item = held[i];

	held[i] = held[--*nheld];
	w->wrong += item->holder != w->number;
	item->holder = 0;
	lfstack_push(&stack, &item->node);
}

static void *push_and_pop(void *arg)
{
	struct item *held[NNODES];
	struct worker *w = arg;
	unsigned nheld = 0;

	for (int i = 0; i < 300000; i++) {
		if (nheld > 0 && rng_next(&w->rng) % 2)
			give(w, held, &nheld);
		else if (nheld < NNODES)
			take(w, held, &nheld);
	}
	while (nheld > 0)
		give(w, held, &nheld);
	return NULL;
}

// With few nodes the threads meet: the same node is popped and pushed again all
// the time.
static const int nodes_at_once[] = {2, 5, NNODES};

TEST(threads_lose_and_double_nothing, .n = RT_ARRAY_LEN(nodes_at_once))
{
	int nnodes = nodes_at_once[_i];
	struct worker workers[THREADS];
	uint64_t npops = 0, wrong = 0, found = 0;
	struct rng r;

	rng_init(&r, "threads_lose_and_double_nothing");
	set_tag(TAG_COUNT - 1000); // soon wraps
	for (int i = 0; i < nnodes; i++)
		lfstack_push(&stack, &items[i].node);
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] =
		    (struct worker){.number = i + 1, .rng = {rng_next(&r)}};
		workers[i].thread = start_thread(push_and_pop, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		join_thread(workers[i].thread);
		npops += workers[i].npops;
		wrong += workers[i].wrong;
	}
	ck_assert_uint_eq(wrong, 0);
	for (struct lfnode *node; (node = lfstack_pop(&stack)); found++) {
		ck_assert_uint_eq(item_of(node)->holder, 0);
		item_of(node)->holder = UINT64_MAX;
		npops -= item_of(node)->npops;
	}
	ck_assert_uint_eq(found, (uint64_t)nnodes);
	ck_assert_uint_eq(npops, 0);
}

// ---- misuse ----

static const uintptr_t bad_offsets[] = {8, UINT64_C(1) << LFSTACK_ADDR_BITS};

TEST(a_node_that_does_not_pack_throws, .n = RT_ARRAY_LEN(bad_offsets),
     .exit = DEATH_EXPECTED)
{
	death_expect("rtheap: node=#\nrtheap: fatal: lfstack_push: address "
		     "does not pack");
	lfstack_push(&stack, (struct lfnode *)((uintptr_t)&items[0].node +
					       bad_offsets[_i]));
}
