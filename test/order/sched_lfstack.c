// The lock-free stack: pushes and pops of a thread that other threads overtake.
#include "runtime/os/lfstack.h"
#include "test/order/sched.h"

static struct lfstack stack;
static struct node {
	struct lfnode node;
} __attribute__((aligned(LFSTACK_ALIGN))) nodes[4];
static struct lfnode *const a = &nodes[0].node, *const b = &nodes[1].node,
			    *const c = &nodes[2].node,
			    *const d = &nodes[3].node;

static struct hand popper, pusher;
static struct lfnode *popped;

static void pop(void)
{
	popped = lfstack_pop(&stack);
}

static void push_d(void)
{
	lfstack_push(&stack, d);
}

// a is on top.
static void fill(void)
{
	lfstack_push(&stack, c);
	lfstack_push(&stack, b);
	lfstack_push(&stack, a);
}

static void expect_pops(struct lfnode *first, struct lfnode *second)
{
	ck_assert_ptr_eq(lfstack_pop(&stack), first);
	ck_assert_ptr_eq(lfstack_pop(&stack), second);
	ck_assert(!lfstack_top(&stack));
}

GROUP(lfstack, .timeout = 2 * AWAIT_SECONDS);

// lfstack NO_TAG, NARROW_TAG: the node that a pop has read is on top again
// after three or four changes, but the node that was below it is no longer on
// the stack.  So the pop must start again.
TEST(a_pop_whose_node_came_back_starts_again, .n = 2)
{
	fill();
	hold_at(SCHED_LFSTACK_POP, &popper, pop);
	lfstack_pop(&stack);
	lfstack_pop(&stack);
	if (_i == 1)
		lfstack_pop(&stack);
	lfstack_push(&stack, a);
	let_end(SCHED_LFSTACK_POP, &popper);
	ck_assert_ptr_eq(popped, a);
	ck_assert_uint_eq(schedpoint_passed(SCHED_LFSTACK_POP), 4 + _i);
	ck_assert_ptr_eq(lfstack_pop(&stack), _i == 1 ? NULL : c);
	ck_assert(!lfstack_top(&stack));
}

// lfstack RESET_FORGETS_TAG: after the reset the head has changed about as
// often as before the pop read it.  The pop still starts again.
TEST(a_pop_from_before_a_reset_starts_again, .n = 4)
{
	fill();
	hold_at(SCHED_LFSTACK_POP, &popper, pop);
	lfstack_reset(&stack);
	for (int i = 0; i < _i; i++)
		lfstack_push(&stack, &nodes[3 - i].node);
	lfstack_push(&stack, a);
	let_end(SCHED_LFSTACK_POP, &popper);
	ck_assert_ptr_eq(popped, a);
	for (int i = _i; i-- > 0;)
		ck_assert_ptr_eq(lfstack_pop(&stack), &nodes[3 - i].node);
	ck_assert(!lfstack_top(&stack));
}

// lfstack POP_IN_TWO.
TEST(two_poppers_never_take_the_same_node)
{
	fill();
	hold_at(SCHED_LFSTACK_POP, &popper, pop);
	ck_assert_ptr_eq(lfstack_pop(&stack), a);
	let_end(SCHED_LFSTACK_POP, &popper);
	ck_assert_ptr_eq(popped, b);
	ck_assert_ptr_eq(lfstack_pop(&stack), c);
	ck_assert(!lfstack_top(&stack));
}

// lfstack LINK_LATE: a thread that finds the node finds its link.
TEST(a_node_is_linked_before_it_is_found)
{
	fill();
	hold_at(SCHED_LFSTACK_PUSH, &pusher, push_d);
	ck_assert_ptr_eq(lfstack_below(d), a);
	ck_assert_ptr_eq(lfstack_top(&stack), a);
	let_end(SCHED_LFSTACK_PUSH, &pusher);
	ck_assert_ptr_eq(lfstack_top(&stack), d);
}

// lfstack PUSH_IN_TWO: another push or pop comes in the middle of a push.  The
// node that the other push added is not lost, and the popped node does not come
// back.
TEST(a_push_that_was_overtaken_starts_again, .n = 2)
{
	lfstack_push(&stack, b);
	hold_at(SCHED_LFSTACK_PUSH, &pusher, push_d);
	if (_i == 0)
		lfstack_push(&stack, a);
	else
		ck_assert_ptr_eq(lfstack_pop(&stack), b);
	let_end(SCHED_LFSTACK_PUSH, &pusher);
	ck_assert_ptr_eq(lfstack_pop(&stack), d);
	if (_i == 0)
		expect_pops(a, b);
	ck_assert(!lfstack_top(&stack));
}
