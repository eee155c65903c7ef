// Keeps a few free blocks, and releases the memory of the others.
#include "runtime/os/slabpool.h"

#include <string.h>

#include "runtime/os/throw.h"

// check_kept checks the beginning of the list of kept blocks.
static const char *check_kept(const struct slabpool *pool)
{
	if (!pool->list && pool->n != 0)
		return "fewer blocks are kept than counted";
	if (pool->list && pool->n == 0)
		return "more blocks are kept than counted";
	return NULL;
}

static void kept_push(struct slabpool *pool, void *block)
{
	RT_ASSERT(mutex_held(pool->lock));
	*(void **)block = pool->list;
	pool->list = block;
	pool->n++;
	RT_CHECK(check_kept(pool));
}

static void *kept_pop(struct slabpool *pool)
{
	void **block = pool->list;

	RT_ASSERT(mutex_held(pool->lock));
	if (block) {
		pool->list = *block;
		pool->n--;
	}
	RT_CHECK(check_kept(pool));
	return block;
}

void *slabpool_take(struct slabpool *pool)
{
	void *block, *was_kept;

	mutex_lock(pool->lock);
	was_kept = kept_pop(pool);
	block = was_kept ? was_kept : slab_alloc(&pool->slab);
	mutex_unlock(pool->lock);
	if (was_kept)
		memset(block, 0, pool->slab.size);
	if (block)
		gauge_add(pool->inuse, pool->slab.size);
	return block;
}

void slabpool_free(struct slabpool *pool, void *block)
{
	gauge_add(pool->inuse, -(int64_t)pool->slab.size);
	mutex_lock(pool->lock);
	if (pool->n < pool->most || !slab_free(&pool->slab, block))
		kept_push(pool, block);
	mutex_unlock(pool->lock);
}

void slabpool_release_kept(struct slabpool *pool)
{
	void *block;

	mutex_lock(pool->lock);
	while ((block = kept_pop(pool)) != NULL)
		if (!slab_free(&pool->slab, block)) {
			kept_push(pool, block);
			break;
		}
	mutex_unlock(pool->lock);
}

void slabpool_fini(struct slabpool *pool)
{
	pool->list = NULL;
	pool->n = 0;
	slab_fini(&pool->slab);
}

const char *slabpool_check(const struct slabpool *pool)
{
	const char *wrong = slab_check(&pool->slab);
	unsigned n = 0;

	if (wrong)
		return wrong;
	for (void **block = pool->list; block; block = *block)
		if (n++ == pool->n)
			return "more blocks are kept than counted";
	return n != pool->n ? "fewer blocks are kept than counted" : NULL;
}
