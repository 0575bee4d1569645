// Package updates is the family of slices that bring releases to robots: archives and channels (artifact), rollouts in phases (rollout), signed
// release metadata (tufrepo), and devices with other update clients (hawkbit).
package updates
