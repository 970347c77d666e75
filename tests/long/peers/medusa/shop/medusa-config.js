const { defineConfig } = require("@medusajs/framework/utils");

module.exports = defineConfig({
  projectConfig: {
    databaseUrl: process.env.DATABASE_URL,
    databaseDriverOptions: { connection: { ssl: false } },
    http: { storeCors: "", adminCors: "", authCors: "", jwtSecret: "for tests only", cookieSecret: "for tests only" },
  },
  admin: { disable: true },
});
