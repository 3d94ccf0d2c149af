-- What a remembered delivery held, as a digest that its key is part of: another content under the same
-- key is then told from a repeat. Deliveries from before have none, and count as repeats.
alter table trigger_deliveries add column content_digest text
    constraint trigger_deliveries_content_is_a_digest check (length(content_digest) = 64);
