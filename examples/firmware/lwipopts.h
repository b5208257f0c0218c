/* SPDX-License-Identifier: MIT
 *
 * lwIP for two TCP connections and nothing else: IPv4 with a fixed address, no system, the raw API, all memory in static pools. */
#ifndef FIRMWARE_LWIPOPTS_H
#define FIRMWARE_LWIPOPTS_H

/* ---- One loop, no threads ---- */
#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0

/* ---- What is spoken ---- */
#define LWIP_IPV4 1
#define LWIP_ARP 1
#define LWIP_ICMP 1
#define LWIP_TCP 1
#define LWIP_UDP 0
#define LWIP_RAW 0
#define IP_REASSEMBLY 0
#define IP_FRAG 0
#define LWIP_STATS 0
#define LWIP_NETIF_LINK_CALLBACK 0
#define LWIP_SINGLE_NETIF 1

/* ---- Memory: pools of fixed size, no heap of lwIP's either ---- */
#define MEM_LIBC_MALLOC 0
#define MEMP_MEM_MALLOC 0
#define MEM_USE_POOLS 1
#define MEM_USE_POOLS_TRY_BIGGER_POOL 1
#define MEMP_USE_CUSTOM_POOLS 1 /* lwippools.h */
#define MEM_ALIGNMENT 4

/* The lock's connection, that of the subscription, and as many of before that are on their way out. */
#define MEMP_NUM_TCP_PCB 4
#define MEMP_NUM_TCP_PCB_LISTEN 1
#define MEMP_NUM_TCP_SEG 16
#define MEMP_NUM_PBUF 4
#define PBUF_POOL_SIZE 16
#define PBUF_POOL_BUFSIZE 256

/* ---- TCP: requests and replies are short ---- */
#define TCP_MSS 1024
#define TCP_WND (2 * TCP_MSS)
#define TCP_SND_BUF (2 * TCP_MSS)
#define TCP_SND_QUEUELEN 8
#define TCP_QUEUE_OOSEQ 0
#define TCP_OVERSIZE 0        /* A segment is as long as what it carries. */
#define LWIP_TCP_RTO_TIME 500 /* In a local network a SYN that is lost is sent again soon. */
#define TCP_LISTEN_BACKLOG 0
#define LWIP_TCP_KEEPALIVE 0

/* Ports and first numbers of a board that has started again are not those of before. */
#define LWIP_RANDOMIZE_INITIAL_LOCAL_PORTS 1
#define LWIP_HOOK_TCP_ISN(local, local_port, remote, remote_port) LWIP_RAND()

#endif
