import { z } from 'zod';

/** The journal's columns as a program likes to have them. */

export const nullable = <T>(schema: z.ZodType<T>) =>
  schema.nullable().transform((value) => value ?? undefined);

export const flag = z.number().transform((value) => value === 1);

const texts = z.array(z.string());

/** A JSON array. */
export const textList = z.string().transform((json) => texts.parse(JSON.parse(json)));
