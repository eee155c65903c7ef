// limiter.c - fills and drains the bucket.
#include "gc/cycle/limiter.h"

// At this percentage a ns of a collection is worth one of the program.
enum { EVEN = 50, ALL = 100 };

void limiter_init(struct limiter *l, uint64_t percent, uint64_t nprocs)
{
	*l = (struct limiter){.capacity = nprocs * LIMITER_CAPACITY,
			      .percent = percent};
}

void limiter_shrink(struct limiter *l, uint64_t nprocs)
{
	l->capacity = base_min(l->capacity, nprocs * LIMITER_CAPACITY);
}

bool limiter_add(struct limiter *l, uint64_t gc, uint64_t program)
{
	unsigned __int128 in = (unsigned __int128)gc * (ALL - l->percent);
	unsigned __int128 out = (unsigned __int128)program * l->percent;
	unsigned __int128 fill = (unsigned __int128)l->fill * EVEN + in;
	unsigned __int128 most = l->capacity + in / EVEN;

	if (in == 0 && out == 0)
		return l->limiting;
	fill = fill > out ? (fill - out) / EVEN : 0;
	most = most > l->fill ? most : l->fill;
	fill = fill > most ? most : fill;
	l->fill = fill > UINT64_MAX ? UINT64_MAX : (uint64_t)fill;
	l->limiting = l->fill >= l->capacity && l->percent < ALL;
	return l->limiting;
}
