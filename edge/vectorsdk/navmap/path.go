package navmap

import (
	"container/heap"
	"math"
	"slices"
)

// Point is a place on the floor, in metres.
type Point struct{ X, Y float64 }

// Bounds of a search; own defaults.
const (
	grid     = 0.02 // m between the points that a way may turn at
	margin   = 0.8  // m that a way may go beyond its ends
	maxCells = 256  // of the searched square, each way
	room     = 0.03 // m that a way stays farther from obstacles where it can, so that it has few turns
	narrow   = 3    // times the price where it cannot
)

// Path returns a way from one point to another on which the middle of the robot keeps a distance from all obstacles: the points where it turns, the last of
// them the goal. What is not known counts as free. ok is false if there is none, or the goal is too close to an obstacle or too far away. A robot that begins
// closer to an obstacle than the distance may leave it.
func (m *Map) Path(from, to Point, distance float64) (way []Point, ok bool) {
	s := newSearch(m, from, to, distance)
	if s == nil {
		return nil, false
	}
	if s.sees(from, to) {
		return []Point{to}, true
	}
	cells := s.run()
	if cells == nil {
		return nil, false
	}
	points := []Point{from}
	for _, c := range cells[1:] {
		points = append(points, s.point(c))
	}
	points[len(points)-1] = to
	for i := 0; i < len(points)-1; { // each time to the farthest point in sight
		next := i + 1
		for j := len(points) - 1; j > next; j-- {
			if s.sees(points[i], points[j]) {
				next = j
				break
			}
		}
		way = append(way, points[next])
		i = next
	}
	return way, true
}

// search is A* on a square grid.
type search struct {
	x, y    float64   // of cell 0
	n       int       // cells each way
	gap     []float64 // from each to the next obstacle; large: there is none near
	least   float64   // gap of a way
	from    int
	to      int
	cost    []float32
	before  []int32
	waiting queue
}

// newSearch returns nil if the goal cannot be reached for certain.
func newSearch(m *Map, from, to Point, distance float64) *search {
	side := max(math.Abs(from.X-to.X), math.Abs(from.Y-to.Y)) + 2*margin
	n := int(math.Ceil(side/grid)) + 1
	if !(n <= maxCells) {
		return nil
	}
	s := &search{x: (from.X+to.X)/2 - side/2, y: (from.Y+to.Y)/2 - side/2, n: n, gap: make([]float64, n*n), least: distance}
	for i := range s.gap {
		s.gap[i] = math.MaxFloat64
	}
	for q := range m.Squares {
		if q.Content.Blocks() {
			s.block(q, distance)
		}
	}
	s.from, s.to = s.cell(from), s.cell(to)
	if s.gap[s.to] < distance {
		return nil
	}
	return s
}

// block marks the cells of a square, and those near it.
func (s *search) block(q Square, distance float64) {
	reach := q.Side/2 + distance + room
	index := func(v, origin float64) int { return min(max(int(math.Floor((v-origin)/grid)), -1), s.n) }
	b := Box{X: q.X, Y: q.Y, Length: q.Side, Width: q.Side}
	for i := max(index(q.X-reach, s.x), 0); i <= min(index(q.X+reach, s.x)+1, s.n-1); i++ {
		for j := max(index(q.Y-reach, s.y), 0); j <= min(index(q.Y+reach, s.y)+1, s.n-1); j++ {
			gap := &s.gap[i*s.n+j]
			*gap = min(*gap, b.Distance(s.x+float64(i)*grid, s.y+float64(j)*grid))
		}
	}
}

func (s *search) cell(p Point) int {
	return int(math.Round((p.X-s.x)/grid))*s.n + int(math.Round((p.Y-s.y)/grid))
}

func (s *search) point(c int) Point {
	return Point{s.x + float64(c/s.n)*grid, s.y + float64(c%s.n)*grid}
}

// sees reports whether the straight way between two points keeps its distance.
func (s *search) sees(a, b Point) bool {
	steps := int(math.Ceil(math.Hypot(b.X-a.X, b.Y-a.Y)/(grid/2))) + 1
	for i := range steps + 1 {
		t := float64(i) / float64(steps)
		if s.gap[s.cell(Point{a.X + t*(b.X-a.X), a.Y + t*(b.Y-a.Y)})] < s.least {
			return false
		}
	}
	return true
}

// run returns the cells of the cheapest way with the least gap to all obstacles, but where it begins closer; nil: there is none.
func (s *search) run() []int {
	s.cost, s.before = make([]float32, s.n*s.n), make([]int32, s.n*s.n)
	for i := range s.cost {
		s.cost[i] = math.MaxFloat32
	}
	s.cost[s.from], s.before[s.from] = 0, -1
	heap.Push(&s.waiting, step{s.from, s.rest(s.from)})
	for len(s.waiting) > 0 {
		at := heap.Pop(&s.waiting).(step)
		if at.cell == s.to {
			break
		}
		if at.estimate > s.cost[at.cell]+s.rest(at.cell)+1e-4 {
			continue // a cheaper way to it was found since
		}
		s.expand(at.cell)
	}
	if s.cost[s.to] == math.MaxFloat32 {
		return nil
	}
	var way []int
	for c := s.to; c >= 0; c = int(s.before[c]) {
		way = append(way, c)
	}
	slices.Reverse(way)
	return way
}

func (s *search) expand(c int) {
	for dx := -1; dx <= 1; dx++ {
		for dy := -1; dy <= 1; dy++ {
			x, y := c/s.n+dx, c%s.n+dy
			if x < 0 || y < 0 || x >= s.n || y >= s.n || dx == 0 && dy == 0 {
				continue
			}
			to := x*s.n + y
			if s.gap[to] < s.least && s.gap[to] <= s.gap[c] { // closer than it may be, and not on the way out
				continue
			}
			price := float32(math.Hypot(float64(dx), float64(dy)))
			if s.gap[to] < s.least+room {
				price *= narrow
			}
			if cost := s.cost[c] + price; cost < s.cost[to] {
				s.cost[to], s.before[to] = cost, int32(c)
				heap.Push(&s.waiting, step{to, cost + s.rest(to)})
			}
		}
	}
}

// rest is the least that is left to the goal.
func (s *search) rest(c int) float32 {
	return float32(math.Hypot(float64(c/s.n-s.to/s.n), float64(c%s.n-s.to%s.n)))
}

type step struct {
	cell     int
	estimate float32
}

type queue []step

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].estimate < q[j].estimate }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(step)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
