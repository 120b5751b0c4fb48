package target

import "sync"

// memory is a map that forgets its oldest entry when it is full. It is safe
// for concurrent use.
type memory[K comparable, V any] struct {
	mu    sync.Mutex
	limit int
	known map[K]V
	order []K // a ring once it is full
	next  int
}

func newMemory[K comparable, V any](limit int) *memory[K, V] {
	return &memory[K, V]{limit: limit, known: make(map[K]V)}
}

// remember stores v under k unless k is known. It returns what is stored and
// whether it was known before.
func (m *memory[K, V]) remember(k K, v V) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.known[k]; ok {
		return old, true
	}
	if len(m.order) < m.limit {
		m.order = append(m.order, k)
	} else {
		delete(m.known, m.order[m.next])
		m.order[m.next] = k
		m.next = (m.next + 1) % m.limit
	}
	m.known[k] = v
	return v, false
}
