// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.io.{File, FileOutputStream}
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.minikdc.MiniKdc
import org.apache.hadoop.security.UserGroupInformation
import org.apache.kerby.KOptions
import org.apache.kerby.kerberos.kerb.client.{KrbClient, KrbConfig, KrbOption}

/**
 * Kerberos on the loopback interface, with one user, whose home is `/alice`. The directory gets what clients need: `krb5.conf`,
 * `core-site.xml`, and of the user `alice.keytab` and a cache with a ticket, `alice.tickets`.
 */
private[testing] final class Kerberos(directory: File) {
  private val User = "alice"
  private val servers = new File(directory, "servers.keytab")
  private val users = new File(directory, s"$User.keytab")

  directory.mkdirs()
  private val kdc = new MiniKdc(MiniKdc.createConf(), directory)
  kdc.start()
  kdc.createPrincipal(servers, "hdfs/localhost", "HTTP/localhost")
  kdc.createPrincipal(users, User)
  Files.copy(kdc.getKrb5conf.toPath, new File(directory, "krb5.conf").toPath)
  storeTicket()

  /** Lets servers ask for tickets, and logs this process in. */
  def secure(configuration: Configuration): Unit = {
    val clients = Map(
      "hadoop.security.authentication" -> "kerberos",
      "hadoop.security.authorization" -> "true",
      "dfs.block.access.token.enable" -> "true",
      "dfs.data.transfer.protection" -> "authentication",
      "dfs.namenode.kerberos.principal" -> principal("hdfs"),
      "dfs.datanode.kerberos.principal" -> principal("hdfs")
    )
    val server = Map(
      "dfs.namenode.keytab.file" -> servers.getPath,
      "dfs.datanode.keytab.file" -> servers.getPath,
      "dfs.web.authentication.kerberos.principal" -> principal("HTTP"),
      "dfs.web.authentication.kerberos.keytab" -> servers.getPath,
      "ignore.secure.ports.for.testing" -> "true"
    )
    val settings = new Configuration(false)
    clients.foreach { case (key, value) => settings.set(key, value) }
    val out = new FileOutputStream(new File(directory, "core-site.xml"))
    try settings.writeXml(out)
    finally out.close()
    (clients ++ server).foreach { case (key, value) => configuration.set(key, value) }
    UserGroupInformation.setConfiguration(configuration)
    UserGroupInformation.loginUserFromKeytab("hdfs/localhost", servers.getPath)
  }

  /** Makes the directory of the user. */
  def makeHome(files: FileSystem): Unit = {
    val home = new Path(s"/$User")
    files.mkdirs(home)
    files.setOwner(home, User, User)
  }

  private def principal(of: String) = s"$of/localhost@${kdc.getRealm}"

  private def storeTicket(): Unit = {
    val client = new KrbClient(new KrbConfig)
    client.setKdcHost("localhost")
    client.setKdcTcpPort(kdc.getPort)
    client.setAllowUdp(false)
    client.setKdcRealm(kdc.getRealm)
    client.init()
    val options = new KOptions
    options.add(KrbOption.CLIENT_PRINCIPAL, User)
    options.add(KrbOption.USE_KEYTAB, true)
    options.add(KrbOption.KEYTAB_FILE, users)
    client.storeTicket(client.requestTgt(options), new File(directory, s"$User.tickets"))
  }
}
