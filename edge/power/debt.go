package power

import "time"

// DebtRates is how fast sleep debt grows awake, charging included, and shrinks asleep, in hours an hour (VEC-PWR-32).
type DebtRates struct{ Awake, Asleep float64 }

// DefaultDebtRates are our own defaults.
var DefaultDebtRates = DebtRates{Awake: 1, Asleep: 2}

// Debt is how much sleep a robot needs, in hours: sleep_debt_hours (VEC-PWR-32). Never below 0.
type Debt float64

// Step lets dt pass, awake or asleep.
func (d Debt) Step(r DebtRates, asleep bool, dt time.Duration) Debt {
	h := max(dt, 0).Hours()
	if asleep {
		return max(0, d-Debt(r.Asleep*h))
	}
	return d + Debt(r.Awake*h)
}
