// Package telemetry is the family of slices that take in what robots report and judge it: events (das), logs (uploads), crashes (crash), health by
// version (health), alerts (alert), and what all of it takes in the bucket (storage).
package telemetry
