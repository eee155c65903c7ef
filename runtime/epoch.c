#include "runtime/epoch.h"

struct epoch epoch;
