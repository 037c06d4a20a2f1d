import { z } from 'zod';

export const parseSchema = z.looseObject({});

export type ParseOptions = z.output<typeof parseSchema>;
