-- +goose Up
-- Which robots have which variation of an experiment (VEC-DAS-16): few events, found without reading all others.
CREATE INDEX das_event_experiment ON das_event (s1, received) WHERE event IN ('experiment.assigned', 'experiment.ended');
