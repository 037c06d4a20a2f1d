import type { Command } from 'commander';
import { jsonSchema } from '../config/problems.js';

export function addSchema(program: Command): void {
  program
    .command('schema')
    .description("print the configuration's JSON Schema, for editors")
    .addHelpText('after', '\nExample:\n  labfeed schema > labfeed.schema.json')
    .action(async () => {
      console.log(JSON.stringify(jsonSchema(), null, 2));
    });
}
