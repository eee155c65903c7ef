// Graphs of many shapes: objects, and the edges that say which of them live.
#define RT_NO_INLINE_ALLOC
#include "test/unit/mark_graph.h"

#include <rt/rt.h>
#include <stdlib.h>
#include <string.h>

// An object of the heap.  Its words are the addresses of other objects.  Some
// have a tag, so they point inside.
struct node {
	uint64_t id;
	uintptr_t word[];
};

struct root root[ROOTS];
static uint32_t root_node[USED]; // UINT32_MAX: none

void roots_begin(void)
{
	memset(root, 0, sizeof root);
	memset(root_node, 0xff, sizeof root_node);
	for (unsigned i = 0; i < ROOTS; i++)
		ck_assert_int_eq(
		    rt_roots_add(&root[i].word, &root[i].gap, RT_ROOT_EXACT),
		    RT_OK);
}

void roots_end(void)
{
	for (unsigned i = 0; i < ROOTS; i++)
		ck_assert_int_eq(rt_roots_remove(&root[i].word, &root[i].gap),
				 RT_OK);
}

void set_root(const struct graph *g, unsigned i, uint32_t node)
{
	root_node[i] = node;
	root[i * (ROOTS / USED)].word =
	    node == UINT32_MAX ? 0 : (uintptr_t)g->node[node];
}

static uint32_t degree(const struct graph *g, uint32_t i)
{
	return g->first[i + 1] - g->first[i];
}

// word_to returns a word that keeps a node alive.
static uintptr_t word_to(const struct graph *g, uint32_t from, uint32_t to)
{
	return (uintptr_t)g->node[to] + (from + to) % 3 * 3;
}

static void graph_begin(struct graph *g, uint32_t n, uint32_t nedges)
{
	*g = (struct graph){.n = n};
	g->first = calloc(n + 1, sizeof *g->first);
	g->edge = calloc(nedges + 1, sizeof *g->edge);
	g->node = calloc(n, sizeof(void *));
	g->reached = calloc(n, 1);
	ck_assert(g->first && g->edge && g->node && g->reached);
}

void graph_end(struct graph *g)
{
	free(g->first);
	free(g->edge);
	free(g->node);
	free(g->reached);
}

// graph_make makes the objects of a graph whose edges are known.
static void graph_make(struct graph *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		g->node[i] = rt_alloc(sizeof(struct node) +
				      degree(g, i) * sizeof(uintptr_t));
		ck_assert_ptr_nonnull(g->node[i]);
		g->node[i]->id = i;
	}
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t k = 0; k < degree(g, i); k++)
			g->node[i]->word[k] =
			    word_to(g, i, g->edge[g->first[i] + k]);
}

void graph_reach(struct graph *g)
{
	uint32_t *todo = calloc(g->n, sizeof *todo);
	uint32_t n = 0;

	ck_assert_ptr_nonnull(todo);
	memset(g->reached, 0, g->n);
	g->nreached = 0;
	for (unsigned i = 0; i < USED; i++)
		if (root_node[i] < g->n && !g->reached[root_node[i]]) {
			g->reached[root_node[i]] = 1;
			todo[n++] = root_node[i];
		}
	while (n != 0) {
		uint32_t i = todo[--n];

		g->nreached++;
		for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
			if (!g->reached[g->edge[e]]) {
				g->reached[g->edge[e]] = 1;
				todo[n++] = g->edge[e];
			}
	}
	free(todo);
}

uint64_t graph_wrong(const struct graph *g)
{
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		if (!g->reached[i])
			continue;
		wrong += g->node[i]->id != i;
		for (uint32_t k = 0; k < degree(g, i); k++)
			wrong += g->node[i]->word[k] !=
				 word_to(g, i, g->edge[g->first[i] + k]);
	}
	return wrong;
}

// ---- shapes ----

// Every object points to others, so each root reaches nearly all objects.
static void shape_random(struct graph *g, struct rng *r)
{
	uint32_t e = 0;

	graph_begin(g, NODES, 5 * NODES);
	for (uint32_t i = 0; i < g->n; i++) {
		for (uint64_t k = 1 + rng_below(r, 5); k != 0; k--)
			g->edge[e++] = (uint32_t)rng_below(r, g->n);
		g->first[i + 1] = e;
	}
}

static void shape_tree(struct graph *g, struct rng *r)
{
	uint32_t e = 0;

	(void)r;
	graph_begin(g, NODES, NODES);
	for (uint32_t i = 0; i < g->n; i++) {
		for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < g->n; k++)
			g->edge[e++] = k;
		g->first[i + 1] = e;
	}
}

static void shape_list(struct graph *g, struct rng *r)
{
	(void)r;
	graph_begin(g, NODES, NODES);
	for (uint32_t i = 0; i < g->n; i++) {
		if (i + 1 < g->n)
			g->edge[i] = i + 1;
		g->first[i + 1] = base_min(i + 1, g->n - 1);
	}
}

// Several objects of hundreds of words, each of which leads to a short list.
static void shape_wide(struct graph *g, struct rng *r)
{
	enum { FAN = 500 };
	uint32_t e = 0;

	(void)r;
	graph_begin(g, NODES, 2 * NODES);
	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t fan = i % FAN == 0 ? FAN : i % 4 != 3;

		for (uint32_t k = 1; k <= fan && i + k < g->n; k++)
			g->edge[e++] = i + k;
		g->first[i + 1] = e;
	}
}

// One object of several pieces (WORK_PIECE) that points to all others.
static void shape_array(struct graph *g, struct rng *r)
{
	uint32_t e = 0;

	(void)r;
	graph_begin(g, NODES, NODES);
	for (uint32_t i = 1; i < g->n; i++)
		g->edge[e++] = i;
	for (uint32_t i = 1; i <= g->n; i++)
		g->first[i] = e;
}

const struct shape shapes[SHAPES] = {
    {"random", shape_random, true}, {"tree", shape_tree, true},
    {"list", shape_list, false},    {"wide", shape_wide, true},
    {"array", shape_array, true},
};

void shape_make(const struct shape *shape, struct graph *g)
{
	struct rng r;

	rng_init(&r, shape->name);
	shape->fn(g, &r);
	graph_make(g);
	roots_begin();
	for (unsigned i = 0; i < USED; i++)
		set_root(g, i, i == 0 ? 0 : (uint32_t)rng_below(&r, g->n));
}
