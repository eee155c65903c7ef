// Overwrites and poisons freed objects.
#include "runtime/spans/spoil.h"

#include <string.h>

// clobber overwrites whole words; small guarded objects begin at any address.
static void clobber(char *p, uint64_t bytes)
{
	const uint64_t word = SPOIL_CLOBBER;

	for (uint64_t i = 0; i + sizeof word <= bytes; i += sizeof word)
		memcpy(p + i, &word, sizeof word);
}

void spoil_object(void *p, uint64_t bytes)
{
	if (settings()->clobberfree != 0)
		clobber(p, bytes);
	if (poison_on)
		poison_poison(p, bytes);
}
