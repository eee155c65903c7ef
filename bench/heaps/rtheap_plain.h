// rtheap_plain.h - rtheap for a host that stores pointers by plain C stores.
#define HEAP_PLAIN 1
#include "rtheap.h"
