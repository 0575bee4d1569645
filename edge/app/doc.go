// Package app is the family of the wiring of a robot's programs: agentd (agentapp), robotd (robotapp), robotsim (simapp) and robotkit (kitapp).
package app
