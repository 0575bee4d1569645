// Package storms tests the house through what lasts for minutes: kills, outages, floods of strangers, bad weather, a rolling upgrade. It waits more than it
// works, so other groups run beside it.
package storms
